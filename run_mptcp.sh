#!/usr/bin/env bash
# Run TCP against MPTCP on a FatTree with this machine's own kernel: install what is missing, run, draw.
set -eu

command="$0${*:+ $*}"
root=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)

# Those of workloads/matrices.py (a test compares), so that a misspelt one is refused before anything is installed.
workloads="one_to_one one_to_several all_to_all stride hotspot random connections
local neighbours against_tcp pairs poisson transfers closed_loop
permuted_loop short_and_long short_and_long_alike constant_rate
beside_constant_rate in_turn map_reduce connections_per_host
permutation_share incast to_one joined_permutation sip trace app"
workloads=${workloads//$'\n'/ }

usage() {
    cat <<TEXT
Usage: sudo ./run_mptcp.sh [k|all] [workload|all] [qmon] [options]

  k         FatTree size: even, from 4 up (default 4); all = 4, 6 and 8
  workload  one_to_one (default), or another one of those below, with or
            without a parameter (stride:4), or all
  all all   every figure of the CS244 2013 post: some 80 points, about 1.5 hours
            (refabric plan cs244 estimates the time on this machine)
  qmon      also sample the queue lengths of every port
  options   those of refabric run: .venv/bin/refabric run --help

Workloads:
$(fold -s -w 76 <<<"$workloads" | sed 's/^/  /; s/ *$//')

Examples:
  sudo ./run_mptcp.sh 8                     TCP and MPTCP, 128 hosts
  sudo ./run_mptcp.sh 8 --profile paper     6 permutations: 1 to 1.5 hours
  sudo ./run_mptcp.sh 4 one_to_several
  sudo ./run_mptcp.sh all all qmon
  ./run_mptcp.sh 4 --engine linux           real hosts in virtual time: no root,
                                            any machine

Results and charts go to ./results (or --results DIR). The same command
continues an interrupted run.

TEXT
    cat "$root/harness/cli/next_steps.txt"
}

fail() { # exit code, message
    printf 'run_mptcp.sh: %s\n' "$2" >&2
    exit "$1"
}

is_workload() { # name, with or without :parameters
    case " all $workloads " in *" ${1%%:*} "*) [ -n "${1%%:*}" ] ;; *) false ;; esac
}

for argument in "$@"; do
    case $argument in -h | --help) usage; exit 0 ;; esac
done

k=4 workload=one_to_one everything=
qmon=()
if [ $# -gt 0 ]; then
    case $1 in
        -[0-9]*) fail 2 "k must be an even number from 4 up, not '$1': e.g. ./run_mptcp.sh 4" ;;
        -* | qmon) ;;
        all) k=4,6,8; everything=perhaps; shift ;;
        *[!0-9]* | '') ;;
        *)
            [ "${#1}" -le 3 ] && [ "$((10#$1))" -ge 4 ] && [ "$((10#$1 % 2))" -eq 0 ] ||
                fail 2 "k must be an even number from 4 up, not '$1': e.g. ./run_mptcp.sh 4"
            k=$((10#$1)); shift ;;
    esac
fi
if [ $# -gt 0 ]; then
    case $1 in
        -* | qmon) ;;
        *)
            is_workload "$1" ||
                fail 2 "'$1' is neither a k nor a workload: k is an even number from 4 up or all, a workload is all or one of $workloads"
            [ "$everything/$1" = perhaps/all ] && everything=yes
            workload=$1; shift ;;
    esac
fi
if [ $# -gt 0 ] && [ "$1" = qmon ]; then
    qmon=(--qmon); shift
fi
if [ $# -gt 0 ]; then
    case $1 in -*) ;; *) fail 2 "unexpected '$1': k, workload and qmon come first, in this order, then options" ;; esac
fi

rootless=
previous=
for argument in "$@"; do
    case $previous$argument in
        --enginesimulator | *--engine=simulator) rootless=--simulator ;;
        --enginelinux | *--engine=linux) rootless=--guests ;;
    esac
    previous=$argument
done
if [ -z "$rootless" ] && [ "$(id -u)" -ne 0 ]; then
    fail 3 "real hosts in real time need root; in virtual time (--engine linux) and simulated (--engine simulator) they do not: run  sudo $command"
fi

# Keep stdout for the run: with --json a program reads it.
"$root/setup/install.sh" --quiet ${rootless:+"$rootless"} >&2

if [ "$everything" = yes ]; then
    exec "$root/.venv/bin/refabric" run cs244 ${qmon[@]+"${qmon[@]}"} "$@"
fi
exec "$root/.venv/bin/refabric" run cs244-one-to-one --k "$k" --workload "$workload" ${qmon[@]+"${qmon[@]}"} "$@"
