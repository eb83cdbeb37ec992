#!/usr/bin/env bash
# From a recipe to a table: models for several mappings, directions and seeds, compared.
#
#   scripts/reproduce.sh configs/translation/plain.yaml --data DIR --direction ro-en
#   scripts/reproduce.sh configs/translation/wmt16.*.yaml --attention softmax,fusedmax --seed 1,2,3
#   scripts/reproduce.sh configs/translation/wmt16.ro-en.yaml --dry-run
#   scripts/reproduce.sh --help
#
# What is there already is not made again; a run that fails does not stop the others, and an
# interrupted command goes on when it is given again.
exec bash "$(dirname "${BASH_SOURCE[0]}")/launch.sh" reproduce fairseq_regattn.recipes recipes "$@"
