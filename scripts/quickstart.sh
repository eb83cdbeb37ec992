#!/usr/bin/env bash
# From nothing to two trained translation models, their BLEU, and pictures of how they attend.
#
#   scripts/quickstart.sh                                       softmax and fusedmax
#   scripts/quickstart.sh --attention oscarmax --attention-lambda 0.02
#   scripts/quickstart.sh --help
#
# Needs Python 3.11 (by choice) and pip; once .venv is there, no network. A second run does only
# what is missing; an interrupted one is continued by the same command.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Wrong flags and --help are answered before anything is installed.
for python in ${PYTHON:-python3.11 python3 python}; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        "$python" "$here/fairseq_regattn/quickstart/options.py" "$@"
        for argument in "$@"; do
            case $argument in -h | --help) exit 0 ;; esac
        done
        break
    fi
done

bash "$here/scripts/setup_venv.sh" plot
exec "$here/.venv/bin/python" -m fairseq_regattn.quickstart "$@"
