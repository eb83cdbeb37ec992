#!/usr/bin/env bash
# Make .venv, with this package in it, on a machine that has only Python (3.11 by choice) and pip.
#
#   scripts/setup_venv.sh [EXTRA]     EXTRA: plot (default), recipes, test, bench or all, as in setup.py
#
# A second call does nothing, and needs no network, until setup.py or the constraints change.
# A .venv that already holds a torch keeps it. PYTHON chooses another interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

extra=${1:-plot}
case $extra in
plot | recipes | test | bench | all) ;;
*)
    echo "setup_venv.sh: no extra named '$extra'; plot, recipes, test, bench and all exist" >&2
    exit 2
    ;;
esac
venv=.venv

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3 python}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "setup_venv.sh: no Python >= 3.9 found; set PYTHON=/path/to/python" >&2
    return 1
}

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    echo "[setup] creating $venv with $("$python" --version)"
    "$python" -m venv "$venv"
fi

# The path is part of the fingerprint: a .venv that was moved points at the old checkout.
fingerprint=$({ pwd; cat setup.py scripts/constraints.txt; } | cksum)
[ "$extra" = plot ] && wider=recipes || wider=$extra # recipes holds plot
for larger in "$extra" "$wider" test all; do # test holds the others, all holds test
    [ "$extra" = all ] && larger=all
    if [ "$(cat "$venv/.installed-$larger" 2>/dev/null)" = "$fingerprint" ]; then
        exit 0
    fi
done

constraints=()
torch=torch
if "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
    constraints=(-c scripts/constraints.txt)
    torch=torch==2.13.0
fi
pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check install "$@"
}

# First and by itself, so that no other requirement picks a torch. One that is there stays, of
# whatever version, which is why torch is not in the constraints.
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    echo "[setup] installing $torch (the largest part)"
    pip "$torch"
fi
echo "[setup] installing fairseq-regattn[$extra] with what it needs (minutes the first time)"
pip ${constraints[@]+"${constraints[@]}"} -e ".[$extra]"
echo "$fingerprint" >"$venv/.installed-$extra"
echo "[setup] done: $(du -sh "$venv" | cut -f1) in $venv"
