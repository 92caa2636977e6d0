#!/usr/bin/env bash
# Sets up and passes every test. Arguments go to pytest: ./run_tests.sh tests/fabric -k calendar
#
# Tests without real hosts share all cores. As root, real networks are started after them, one at a time (in
# private namespaces, nothing is left behind); otherwise those tests are left out and a line says so.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
setup/install.sh --quiet

if [ $# -gt 0 ]; then
    exec .venv/bin/python -m pytest "$@"
fi

.venv/bin/ruff check .
.venv/bin/ruff format --check --quiet .
.venv/bin/mypy
.venv/bin/python -m pytest -m 'not emulation' --numprocesses auto --dist loadfile
if [ "$(id -u)" = 0 ]; then
    .venv/bin/python -m pytest -m emulation
else
    echo "not root: tests that start real hosts are left out; run: sudo ./run_tests.sh"
fi
