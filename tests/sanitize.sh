#!/usr/bin/env bash
# Builds the core with warnings as errors and with AddressSanitizer and UndefinedBehaviorSanitizer, and
# runs its tests on that build, real frames included when root.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
build=$root/build/sanitize
packages=lib/$(ls "$venv/lib")/site-packages

cmake -S "$root/fabric" -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$venv/bin/ninja" \
    -DCMAKE_BUILD_TYPE=Debug -DFABRIC_SANITIZE=ON -DFABRIC_STRICT=ON -DPython_EXECUTABLE="$venv/bin/python" \
    -Dnanobind_DIR="$("$venv/bin/python" -m nanobind --cmake_dir)" >/dev/null
cmake --build "$build" >"$build/log" || { cat "$build/log"; exit 1; }

# A second environment in which the instrumented module stands before the installed one.
mkdir -p "$build/path/fabric"
cp "$root"/fabric/*.py "$build"/_core*.so "$build/path/fabric/"
/usr/bin/python3 -m venv --system-site-packages --without-pip "$build/venv"
printf '%s\n' "$build/path" "$root" "$venv/$packages" >"$build/venv/$packages/refabric.pth"
python=$build/venv/bin/python

cd "$root"
# Python itself never frees everything: leaks are not looked for.
export ASAN_OPTIONS=detect_leaks=0 PYTHONSAFEPATH=1
export LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)"
used=$("$python" -c 'import fabric._core; print(fabric._core.__file__)')
case $used in "$build"/*) ;; *) echo "sanitize.sh: the instrumented core is not the one in use: $used" >&2; exit 1 ;; esac

tests=(tests/fabric tests/engines/simulation tests/engines/emulation/test_subflow_index.py tests/engines/emulation/test_native_checks.py)
[ "$(id -u)" != 0 ] || tests+=(tests/live/test_{fabric_frames,native_driver,path_pings,socket_table}.py)
"$python" -m pytest -p no:cacheprovider -o pythonpath= "${tests[@]}"
