# Sourced by ./demo and ./test: puts them into .venv, which is built anew when its recipe changes.
#   source ./environment.sh [EXTRA]
extra="${1:-}"
python="${PYTHON:-python3}"
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "hopscope: $("$python" --version) found, expected Python 3.11 or later: set PYTHON" >&2
    exit 2
fi
recipe="$(cat pyproject.toml constraints.txt hopscope/models/native/* | "$python" -c \
    'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')"
if [ "$(cat ".venv/.recipe${extra:+-$extra}" 2>/dev/null)" != "$recipe" ]; then
    echo "Setting up .venv (a few minutes, once) …" >&2
    "$python" -m venv .venv
    # A plain path to this folder (compat): scripts in the folder above, and type checkers, find it too.
    # torch first and pinned: the newest one would bring gigabytes of CUDA libraries.
    .venv/bin/python -m pip install -q --disable-pip-version-check "$(grep '^torch==' constraints.txt)" -c constraints.txt
    .venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt \
        --config-settings editable_mode=compat -e ".${extra:+[$extra]}"
    echo "$recipe" > ".venv/.recipe${extra:+-$extra}"
fi
source .venv/bin/activate
