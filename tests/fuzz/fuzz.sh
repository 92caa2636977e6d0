#!/usr/bin/env bash
# Fuzzes what the core decodes, under AddressSanitizer and UndefinedBehaviorSanitizer: frames of hosts, network
# plans, netlink dumps. Ends with 1 at the first finding, whose input is in build/fuzz/TARGET.found.
#
#   tests/fuzz/fuzz.sh [SECONDS_EACH] [SEED]
#
# The targets have libFuzzer's signature; driver.cpp is a small fuzzer that needs g++ only.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/fuzz
export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=handle_abort=1
mkdir -p "$build"

flags=(-std=c++20 -O1 -g -Wall -Wextra -I"$root/fabric" -I"$root/tests/fuzz" -fsanitize=address,undefined
       -fno-sanitize-recover=all)
g++ "${flags[@]}" -c "$root/tests/fuzz/driver.cpp" -o "$build/driver.o"

# Builds and runs one target. Its output comes as a whole, since others run beside it.
fuzz() {
    local target=$1 seconds=$2 seed=$3 sources=("$root/tests/fuzz/$1.cpp") said failed=0
    [ "$target" != plan ] || sources+=("$root"/fabric/core/disciplines/*.cpp)
    [ "$target" != inet_diag ] || sources+=("$root/fabric/host_io/socket_dump.cpp")
    g++ "${flags[@]}" -fsanitize-coverage=trace-pc "${sources[@]}" "$build/driver.o" -o "$build/$target"
    said=$("$build/$target" "$seconds" "$seed" "$root/tests/fuzz/corpus/$target" "$build/$target.found" 2>&1) || failed=1
    printf 'fuzz: %s: %s\n' "$target" "$said"
    return "$failed"
}

# As many at once as there are CPUs: each has one to itself.
running=() failed=0
for target in frame plan inet_diag; do
    if [ "${#running[@]}" -ge "$(nproc)" ]; then
        wait "${running[0]}" || failed=1
        running=("${running[@]:1}")
    fi
    fuzz "$target" "${1:-60}" "${2:-1}" &
    running+=("$!")
done
for process in "${running[@]}"; do
    wait "$process" || failed=1
done
exit "$failed"
