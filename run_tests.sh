#!/usr/bin/env bash
# Sets up and runs every test. Arguments go to pytest: ./run_tests.sh tests/fabric -k queue
#
# Tests without real hosts share all cores and run as the owner of this folder, so that nothing in it becomes
# root's. As root, tests of real hosts follow, in private namespaces: side by side what a busy machine does not
# change, with those that need the emulation lock in turn; then what judges rates and times, one at a time.
# Otherwise they are left out and a line says so.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
setup/install.sh --quiet

owner=$(stat -c %u .)
as_owner=()
if [ "$(id -u)" = 0 ] && [ "$owner" != 0 ]; then
    command -v setpriv >/dev/null ||
        { echo "run_tests.sh: setpriv is missing: run  apt-get install util-linux" >&2; exit 3; }
    # Never the group of a folder: it may be root's.
    IFS=: read -r _ _ _ group _ home _ < <(getent passwd "$owner" || echo ":::$owner::/nonexistent:")
    as_owner=(setpriv --reuid "$owner" --regid "$group" --clear-groups --reset-env env
              "HOME=$home" "PATH=/usr/local/bin:/usr/bin:/bin" "LANG=${LANG:-C.UTF-8}")
fi

# Root writes neither byte code nor a cache into the owner's folder.
live=(.venv/bin/python -m pytest)
[ "$(id -u)" != 0 ] || live=(.venv/bin/python -B -m pytest -p no:cacheprovider)
if [ $# -gt 0 ]; then
    exec "${live[@]}" "$@"
fi

"${as_owner[@]}" .venv/bin/ruff check .
"${as_owner[@]}" .venv/bin/ruff format --check --quiet .
"${as_owner[@]}" .venv/bin/lint-imports --no-logo --no-cache
"${as_owner[@]}" .venv/bin/mypy
"${as_owner[@]}" .venv/bin/python -m pytest -m 'not emulation' --numprocesses auto --dist loadfile
if [ "$(id -u)" = 0 ]; then
    in_turn=$(mktemp) failed=0
    "${live[@]}" -m 'emulation and machine and not physics' >"$in_turn" 2>&1 &
    "${live[@]}" -m 'emulation and not machine and not physics' --numprocesses auto || failed=$?
    wait $! || failed=$?
    cat "$in_turn"
    rm "$in_turn"
    [ "$failed" = 0 ] || exit "$failed"
    "${live[@]}" -m 'emulation and physics'
else
    echo "not root: tests that start real hosts are left out; run: sudo ./run_tests.sh"
fi
