#!/usr/bin/env bash
# Installs what refabric needs: Debian packages, a virtual environment in .venv that sees Debian's
# Mininet, the C++ core, the BPF objects of the coupled congestion controls, and Open vSwitch; without either
# of the last two all but that works. Does nothing, in well under two seconds, when all is there.
# Open vSwitch's own service is neither started nor enabled here: runs start their own (docs/ovs.md).
#
#   setup/install.sh [--quiet] [--simulator] [--pox]    needs root only where a Debian package is missing;
#                                                       --simulator: only what simulated hosts need
#                                                       --pox: POX too, which no package has, into .pox
#
# Exit codes: 0 ready, 2 wrong arguments, 3 this machine cannot be made ready (the last line says why).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
python=/usr/bin/python3   # the interpreter Debian's mininet package is installed for
packages=(mininet iperf3 mptcpize iproute2 ethtool iputils-ping util-linux procps
          python3 python3-venv python3-dev g++ cmake)
bpf_packages=(clang libbpf-dev)   # MPTCP runs uncoupled without
ovs_packages=(openvswitch-switch)   # no --dataplane ovs without
policy=/usr/sbin/policy-rc.d
packages_of_ours=(common fabric topos controllers workloads model analysis engines setup plots harness experiments)
bpf=$root/engines/emulation/congestion
pox_source=https://github.com/noxrepo/pox
pox_commit=20d291825de5e1038e4500382e842e4f95b5731a   # branch halosaur
quiet=no
simulator=no
pox=no
log=

trap 'rm -f -- "$log"; policy_back' EXIT

say() { [ "$quiet" = yes ] || printf '%s\n' "$*"; }
unfit() { printf 'setup: %s\n' "$*" >&2; exit 3; }

missing_packages() {
    local package state
    for package in "$@"; do
        state=$(grep -c "^$package installed" <<<"$installed" || true)
        [ "$state" != 0 ] || printf '%s ' "$package"
    done
}

query_packages() {
    # shellcheck disable=SC2016 -- dpkg-query expands these, not the shell
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" "${bpf_packages[@]}" "${ovs_packages[@]}" 2>/dev/null || true)
}

apt() {
    # Without the lock of this script: a daemon that a package starts would keep it for ever.
    DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1 </dev/null 9<&-
}

get() {
    # The lists that are there mostly do; where not, one unreachable source among many must not matter.
    apt install -y --no-install-recommends "$@" && return
    apt update || true
    apt install -y --no-install-recommends "$@"
}

install_packages() {
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
        unfit "this is not Debian or Ubuntu: install ${packages[*]} by hand on a Debian 12+ or Ubuntu 24.04+ machine"
    query_packages
    local missing
    missing=$(missing_packages "${packages[@]}")
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || unfit "missing packages: $missing- run: sudo setup/install.sh"
    printf 'setup: installing %s\n' "$missing" >&2
    log=$(mktemp)
    # shellcheck disable=SC2086 -- one word a package
    if ! get $missing; then
        tail -n 15 "$log" >&2
        unfit "apt-get could not install: $missing- mend what it says above, then run setup/install.sh again"
    fi
    rm -f -- "$log"
}

fingerprint() {
    # Content of the given files, where the tree stands, and which Python it is for.
    { "$python" -V; printf '%s\n' "$root"; cat "$@"; } | sha256sum | cut -c1-16
}

core_sources() {
    find "$root/fabric" \( -name '*.cpp' -o -name '*.hpp' -o -name CMakeLists.txt \) -print0 | sort -z |
        xargs -0 cat -- "$root/pyproject.toml" "$root/requirements.txt"
}

is_current() { [ -f "$venv/.refabric-$1" ] && [ "$(cat "$venv/.refabric-$1")" = "$2" ]; }

run_logged() {
    local what=$1
    shift
    log=$(mktemp)
    printf 'setup: %s\n' "$what" >&2
    if ! "$@" >"$log" 2>&1 </dev/null; then
        tail -n 40 "$log" >&2
        unfit "$what failed: '$*' (its last lines are above)"
    fi
    rm -f -- "$log"
}

install_environment() {
    local wanted
    wanted=$(fingerprint "$root/requirements.txt")
    is_current environment "$wanted" && return 0
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        unfit "$("$python" -V) is too old: Python 3.11 is needed (Debian 12+, Ubuntu 24.04+)"
    rm -rf "$venv"
    run_logged "making .venv" "$python" -m venv --system-site-packages "$venv"
    run_logged "installing the pinned Python packages" "$venv/bin/pip" install --disable-pip-version-check \
        --ignore-installed --requirement "$root/requirements.txt"
    printf '%s\n' "$wanted" >"$venv/.refabric-environment"
}

install_core() {
    local wanted
    wanted=$(core_sources | fingerprint -)
    is_current core "$wanted" && return 0
    run_logged "building the fabric core" "$venv/bin/pip" install --disable-pip-version-check \
        --no-build-isolation --no-deps --editable "$root"
    # Byte code of a later run as root must not lie in folders that its owner cannot remove.
    "$venv/bin/python" -m compileall -q "${packages_of_ours[@]/#/$root/}" >/dev/null || true
    printf '%s\n' "$wanted" >"$venv/.refabric-core"
}

uncoupled() { printf 'setup: %s: MPTCP will run uncoupled reno; to mend it: %s\n' "$1" "$2" >&2; }

install_bpf_packages() {
    local missing
    missing=$(missing_packages "${bpf_packages[@]}")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ]; then
        uncoupled "missing packages: $missing" "sudo setup/install.sh"
        return 1
    fi
    printf 'setup: installing %s\n' "$missing" >&2
    log=$(mktemp)
    # shellcheck disable=SC2086 -- one word a package
    if ! get $missing; then
        uncoupled "apt-get could not install $missing" "sudo apt-get install $missing&& sudo setup/install.sh"
        rm -f -- "$log"
        return 1
    fi
    rm -f -- "$log"
}

compile_bpf() {
    # For any kernel and CPU of this byte order: where the kernel's structures lie is found when they are loaded.
    local source objects=$bpf/objects
    rm -rf "$objects" && mkdir -p "$objects"
    for source in "$bpf"/bpf/*.bpf.c; do
        clang -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -c "$source" \
            -o "$objects/$(basename "$source" .bpf.c).o" || return 1
    done
}

install_bpf() {
    # Nothing here makes the machine unfit. What failed once is tried again by calls without --quiet only.
    local wanted
    wanted=$(cat "$bpf"/bpf/* | fingerprint -)
    if is_current bpf "$wanted" && [ -d "$bpf/objects" ]; then return 0; fi
    if [ "$quiet" = yes ] && is_current bpf "failed $wanted"; then return 0; fi
    printf 'failed %s\n' "$wanted" >"$venv/.refabric-bpf"
    install_bpf_packages || return 0
    log=$(mktemp)
    printf 'setup: compiling the coupled congestion controls\n' >&2
    if compile_bpf >"$log" 2>&1 </dev/null; then
        printf '%s\n' "$wanted" >"$venv/.refabric-bpf"
    else
        tail -n 15 "$log" >&2
        rm -rf "$bpf/objects"
        uncoupled "clang could not compile $bpf/bpf (above)" "setup/install.sh"
    fi
    rm -f -- "$log"
}

policy_away() {
    # Until policy_back, or the end of this process however it comes, no package may start a daemon (invoke-rc.d(8)).
    if [ -e "$policy" ]; then mv -- "$policy" "$policy.refabric"; fi
    printf '#!/bin/sh\nif [ -d /proc/%s ]; then exit 101; fi\n' "$$" >"$policy.new"
    chmod 755 "$policy.new"
    mv -- "$policy.new" "$policy"
}

policy_back() {
    [ "$(id -u)" = 0 ] || return 0
    if grep -q "/proc/$$ " "$policy" 2>/dev/null; then rm -f -- "$policy"; fi
    if [ -e "$policy.refabric" ] && [ ! -e "$policy" ]; then mv -- "$policy.refabric" "$policy"; fi
}

no_ovs() { printf 'setup: %s: no --dataplane ovs; to mend it: %s\n' "$1" "$2" >&2; }

install_ovs() {
    # Nothing here makes the machine unfit. What failed once is tried again by calls without --quiet only.
    local missing
    missing=$(missing_packages "${ovs_packages[@]}")
    [ -n "$missing" ] || return 0
    if [ "$quiet" = yes ] && is_current ovs failed; then return 0; fi
    printf 'failed\n' >"$venv/.refabric-ovs"
    if [ "$(id -u)" != 0 ]; then
        no_ovs "missing packages: $missing" "sudo setup/install.sh"
        return 0
    fi
    printf 'setup: installing %s(its service is neither started nor enabled)\n' "$missing" >&2
    log=$(mktemp)
    policy_away
    # shellcheck disable=SC2086 -- one word a package
    if get $missing; then
        rm -f -- "$venv/.refabric-ovs"
        not_at_boot openvswitch-switch ovs-record-hostname
    else
        no_ovs "apt-get could not install $missing" "sudo apt-get update && sudo setup/install.sh"
    fi
    policy_back
    rm -f -- "$log"
}

not_at_boot() {
    local service
    for service in "$@"; do
        if command -v deb-systemd-helper >/dev/null; then deb-systemd-helper disable "$service.service" >>"$log" 2>&1 || true; fi
        if [ -e "/etc/init.d/$service" ]; then update-rc.d "$service" disable >>"$log" 2>&1 || true; fi
    done
}

fetch_pox() {
    rm -rf "$root/.pox" && git init --quiet "$root/.pox" &&
        timeout 120 git -C "$root/.pox" fetch --quiet --depth 1 "$pox_source" "$pox_commit" &&
        git -C "$root/.pox" -c advice.detachedHead=false checkout --quiet FETCH_HEAD
}

install_pox() {
    [ ! -d "$root/.pox/.git" ] || [ "$(git -C "$root/.pox" rev-parse HEAD)" != "$pox_commit" ] || return 0
    command -v git >/dev/null || unfit "POX is fetched with git, which is missing: sudo apt-get install git"
    log=$(mktemp)
    printf 'setup: fetching POX\n' >&2
    if ! GIT_TERMINAL_PROMPT=0 fetch_pox >"$log" 2>&1 </dev/null; then
        tail -n 5 "$log" >&2
        rm -rf "$root/.pox"
        unfit "POX could not be fetched from $pox_source (above): set POX_DIR to a checkout of its branch halosaur"
    fi
    rm -f -- "$log"
}

give_back() {
    # Under sudo the tree stays its owner's.
    [ "$(id -u)" = 0 ] && [ -n "${SUDO_UID:-}" ] || return 0
    local path
    for path in "$venv" "$root/build" "$root/.pox" "$bpf/objects"; do
        [ ! -e "$path" ] || chown -R --no-dereference "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$path"
    done
    find "${packages_of_ours[@]/#/$root/}" -name __pycache__ -prune \
        -exec chown -R --no-dereference "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" {} +
}

made_at() { stat -c %Y "$venv"/.refabric-{core,bpf,ovs} 2>/dev/null || true; }

main() {
    local argument
    for argument in "$@"; do
        case "$argument" in
            --quiet) quiet=yes ;;
            --simulator) simulator=yes; packages=(python3 python3-venv python3-dev g++ cmake) ;;
            --pox) pox=yes ;;
            *) printf 'usage: setup/install.sh [--quiet] [--simulator] [--pox]\n' >&2; exit 2 ;;
        esac
    done
    exec 9<"$root/setup"
    flock -w 900 9 || unfit "another setup/install.sh has been running for 15 minutes; end it and try again"
    install_packages
    local before
    before=$(made_at)
    install_environment
    install_core
    [ "$simulator" = yes ] || { install_bpf; install_ovs; }
    [ "$pox" = no ] || install_pox
    [ "$before" = "$(made_at)" ] || give_back
    say "refabric is ready: .venv/bin/refabric"
}

main "$@"
