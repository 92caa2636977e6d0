#!/usr/bin/env bash
# Builds the core with warnings as errors and with a sanitizer, and runs its tests on that build, real frames
# included when root.
#
#   tests/sanitize.sh [address|thread] [SECONDS]
#
# address (the default): AddressSanitizer and UndefinedBehaviorSanitizer, then SECONDS (default 60) of fuzzing of each
# decoder (tests/fuzz). thread: ThreadSanitizer, on what has threads of its own.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
kind=${1:-address}
packages=lib/$(ls "$venv/lib")/site-packages
build=$root/build/sanitize-$kind

case $kind in
    address)
        sanitizers=address,undefined
        # Python itself never frees everything: leaks are not looked for.
        export ASAN_OPTIONS=detect_leaks=0
        preload="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)"
        run=()
        # Not: long simulations that judge laws and figures, on code that shorter ones run.
        tests=(tests/fabric tests/engines/simulation --ignore-glob='*/validation/*'
               --ignore-glob='*/test_windows_of_figures.py' --ignore-glob='*/test_phase_effects.py'
               --ignore-glob='*/test_best_possible_times.py'
               tests/engines/emulation/test_{subflow_index,traffic}.py
               'tests/engines/emulation/test_kernel_interfaces.py::test_any_bytes[core]')
        ;;
    thread)
        sanitizers=thread
        # Python is not instrumented: what it does between our threads is seen by its locks alone.
        export TSAN_OPTIONS="halt_on_error=0 exitcode=66 second_deadlock_stack=1"
        preload=$(g++ -print-file-name=libtsan.so)
        # Its shadow memory needs addresses at which newer kernels place programs at random.
        run=(setarch "$(uname -m)" --addr-no-randomize)
        tests=(tests/engines/emulation/test_{noise_and_memory,traffic}.py tests/fabric/test_fabric_clock.py
               tests/engines/simulation/parts/test_threads.py)
        ;;
    *) echo "usage: tests/sanitize.sh [address|thread] [SECONDS]" >&2; exit 2 ;;
esac
live=()
if [ "$(id -u)" = 0 ]; then
    live+=(tests/live/dataplanes/test_fabric_frames.py tests/live/measure/test_path_pings.py)
    # Not yet under ThreadSanitizer: some of their scenarios fail there, perhaps because it is slow.
    case $kind in
        address) live+=(tests/live/traffic/test_flow_drivers.py tests/live/measure/test_socket_table.py) ;;
        thread) live+=(tests/live/dataplanes/test_links_live.py) ;;
    esac
fi
# Of repetitions with other networks one is enough, and iperf3 is not ours.
once='not (ecmp or dual_homed or iperf3)'
[ "$kind" = address ] || once+=' and (not links_live or stands_still)'

cmake -S "$root/fabric" -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$venv/bin/ninja" \
    -DCMAKE_BUILD_TYPE=Debug -DFABRIC_SANITIZE="$sanitizers" -DFABRIC_STRICT=ON \
    -DPython_EXECUTABLE="$venv/bin/python" -Dnanobind_DIR="$("$venv/bin/python" -m nanobind --cmake_dir)" >/dev/null
cmake --build "$build" >"$build/log" || { cat "$build/log"; exit 1; }

# A second environment in which the instrumented module precedes the installed one.
mkdir -p "$build/path/fabric"
cp "$root"/fabric/*.py "$build"/_core*.so "$build/path/fabric/"
/usr/bin/python3 -m venv --system-site-packages --without-pip "$build/venv"
printf '%s\n' "$build/path" "$root" "$venv/$packages" >"$build/venv/$packages/refabric.pth"
python=$build/venv/bin/python

cd "$root"
(
    export PYTHONSAFEPATH=1 LD_PRELOAD=$preload
    used=$("${run[@]}" "$python" -c 'import fabric._core; print(fabric._core.__file__)')
    case $used in "$build"/*) ;; *) echo "sanitize.sh: the instrumented core is not the one in use: $used" >&2; exit 1 ;; esac
    checked=("${run[@]}" "$python" -m pytest -p no:cacheprovider -o pythonpath=)
    "${checked[@]}" --numprocesses auto --dist loadfile "${tests[@]}"
    [ ${#live[@]} = 0 ] || "${checked[@]}" -k "$once" "${live[@]}"
)
[ "$kind" != address ] || tests/fuzz/fuzz.sh "${2:-60}"
