#!/usr/bin/env bash
# What quickstart.sh and reproduce.sh share: check the flags, make .venv, run the package.
#
#   scripts/launch.sh quickstart|reproduce MODULE EXTRA [FLAGS]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
script=$1 module=$2 extra=$3
shift 3

# Wrong flags and --help are answered before anything is installed.
for python in ${PYTHON:-python3.11 python3 python}; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        "$python" "$here/fairseq_regattn/recipes/options.py" "$script" "$@"
        for argument in "$@"; do
            case $argument in -h | --help) exit 0 ;; esac
        done
        break
    fi
done

bash "$here/scripts/setup_venv.sh" "$extra"
exec "$here/.venv/bin/python" -m "$module" "$@"
