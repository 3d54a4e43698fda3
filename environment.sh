# Puts hopscope into .venv, which is built anew when its recipe changes, and activates that.
# Sourced by ./demo and ./test, and by hand in this folder; nothing of it ends the shell it is in.
#   source ./environment.sh [EXTRA]
_hopscope_environment() {
    local extra="$1" python="${PYTHON:-python3}" recipe kept
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "hopscope: $("$python" --version) found, expected Python 3.11 or later: set PYTHON" >&2
        return 2
    fi
    recipe="$(cat pyproject.toml constraints.txt hopscope/models/csrc/* | "$python" -c \
        'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')" || return
    kept=".venv/.recipe${extra:+-$extra}"
    # Of two calls at once, one builds and the other waits.
    if command -v flock > /dev/null; then
        exec 9> .venv.lock
        flock -n 9 || { echo "Waiting for another call that sets up .venv …" >&2; flock 9; }
    fi
    # One whose Python is gone, or was moved, is of no use.
    .venv/bin/python -c '' 2> /dev/null || rm -rf .venv
    if [ "$(cat "$kept" 2> /dev/null)" != "$recipe" ]; then
        echo "Setting up .venv (a few minutes, once) …" >&2
        "$python" -m venv .venv || return
        # torch first and pinned, so that nothing else brings a newer one.
        .venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt \
            "$(grep '^torch==' constraints.txt)" || return
        # A plain path to this folder (compat): scripts in the folder above, and type checkers, find it too.
        .venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt \
            --config-settings editable_mode=compat -e ".${extra:+[$extra]}" || return
        echo "$recipe" > "$kept"
    fi
    exec 9>&-
    source .venv/bin/activate
}
_hopscope_environment "${1:-}"
