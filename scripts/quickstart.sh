#!/usr/bin/env bash
# From nothing to two trained translation models, their BLEU, and pictures of how they attend.
#
#   scripts/quickstart.sh                                       softmax and fusedmax
#   scripts/quickstart.sh --attention oscarmax --attention-lambda 0.02
#   scripts/quickstart.sh --help
#
# Needs Python 3.11 (by choice) and pip; once .venv is there, no network. A second run does only
# what is missing; an interrupted one is continued by the same command.
exec bash "$(dirname "${BASH_SOURCE[0]}")/launch.sh" quickstart fairseq_regattn.quickstart plot "$@"
