#!/usr/bin/env bash
# Fuzzes what the core decodes, under AddressSanitizer and UndefinedBehaviorSanitizer: frames of hosts, network
# plans, netlink dumps. Ends with 1 at the first finding, whose input is in build/fuzz/TARGET.found.
#
#   tests/fuzz/fuzz.sh [SECONDS_EACH] [SEED]
#
# The targets have libFuzzer's signature; driver.cpp is a small fuzzer that needs g++ only.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
seconds=${1:-60}
seed=${2:-1}
build=$root/build/fuzz
export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=handle_abort=1
mkdir -p "$build"

flags=(-std=c++20 -O1 -g -Wall -Wextra -I"$root/fabric" -I"$root/tests/fuzz")
checked=(-fsanitize=address,undefined -fno-sanitize-recover=all)
g++ "${flags[@]}" "${checked[@]}" -c "$root/tests/fuzz/driver.cpp" -o "$build/driver.o"
for target in frame plan inet_diag; do
    sources=("$root/tests/fuzz/$target.cpp")
    [ "$target" != inet_diag ] || sources+=("$root/fabric/host_io/socket_dump.cpp")
    g++ "${flags[@]}" "${checked[@]}" -fsanitize-coverage=trace-pc "${sources[@]}" "$build/driver.o" -o "$build/$target"
    printf 'fuzz: %s: ' "$target"
    "$build/$target" "$seconds" "$seed" "$root/tests/fuzz/corpus/$target" "$build/$target.found"
done
