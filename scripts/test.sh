#!/usr/bin/env bash
# Format, lint, types and tests, on a machine that has only Python 3.11 and pip.
#
#   scripts/test.sh                      everything
#   scripts/test.sh -m "not slow"        the fast tier
#   scripts/test.sh tests/test_compat.py -k foreign    anything else pytest takes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup_venv.sh test
# Two busy processes with two OpenMP threads each crawl on two cores.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export PATH="$PWD/.venv/bin:$PATH"

echo "[test] ruff"
ruff format --check .
ruff check .
echo "[test] mypy"
mypy
echo "[test] pytest"
# pytest exits with 5, a failure, when it collects nothing
exec python -m pytest -n "${TEST_WORKERS:-2}" "$@"
