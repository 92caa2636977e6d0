#!/bin/bash
# Installs what refabric needs: Debian packages, a virtual environment in .venv with access to Debian's
# Mininet, the C++ core, the BPF objects of the coupled congestion controls, and Open vSwitch. If one of the
# last two fails, everything else still works. Takes well under two seconds if everything is installed.
# As root in a clone of an ordinary user it installs Debian packages, and does everything else as that user.
# Open vSwitch's service is neither started nor enabled; each run starts its own daemons (docs/dataplanes/ovs.md).
#
#   setup/install.sh [--quiet] [--simulator|--guests] [--pox]
#   setup/install.sh --ims                              only what the real functions of refabric run ims need: SIP
#                                                       servers, SIPp and redis, neither started nor enabled
#                                                       needs root only if a Debian package is missing
#                                                       --simulator: only what simulated hosts need
#                                                       --guests: what guests need (--engine linux): neither
#                                                       BPF objects nor Open vSwitch
#                                                       --pox: also POX, which has no package, in .pox
#   setup/install.sh --docs                             only what refabric docs needs: MkDocs, in .venv-docs
#
# Exit codes: 0 ready, 2 wrong arguments, 3 this machine cannot be prepared (the last line says why).
set -euo pipefail

system_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [ "$EUID" = 0 ]; then # no folder of the caller decides which programs root runs
    export PATH=$system_path
    unset TMPDIR CDPATH
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
python=/usr/bin/python3   # the interpreter for which Debian's mininet package is installed
packages=(mininet iperf3 mptcpize iproute2 ethtool iputils-ping util-linux procps
          python3 python3-venv python3-dev g++ cmake)
bpf_packages=(clang libbpf-dev)   # without them MPTCP runs uncoupled
ovs_packages=(openvswitch-switch)   # without it --dataplane ovs is unavailable
ims_packages=(kamailio kamailio-redis-modules sip-tester redis-server)
policy=/usr/sbin/policy-rc.d
root_lock=/run/refabric-setup.lock
root_failed=/run/refabric-setup.failed   # packages that apt-get could not install; --quiet does not try them again
packages_of_ours=(common fabric topos controllers workloads ccp model analysis engines setup plots harness experiments refabric)
bpf=$root/engines/emulation/congestion
pox_source=https://github.com/noxrepo/pox
pox_commit=20d291825de5e1038e4500382e842e4f95b5731a   # branch halosaur
# What setup/kernel_build.py runs, which builds the kernel of --engine linux (a test compares).
kernel_packages=(gcc make flex bison bc perl xz-utils binutils tar dpkg util-linux libc6-dev)
quiet=no
simulator=no
guests=no
for_guests=
pox=no
ims=no
docs=no
after_packages=no
locked=no
log=
counter=
count_every_s=30

say() { [ "$quiet" = yes ] || printf '%s\n' "$*"; }
unfit() { printf 'setup: %s\n' "$*" >&2; exit 3; }
interrupted() { printf 'setup: interrupted; run setup/install.sh again\n' >&2; exit 130; }
clean_up() { stop_counting; rm -f -- "$log"; policy_back; }

missing_packages() {
    local package installed
    # shellcheck disable=SC2016 # dpkg-query expands these, not the shell
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
    for package in "$@"; do
        grep -qxF "$package installed" <<<"$installed" || printf '%s ' "$package"
    done
}

kernel_is_built() { # whether guests have had a kernel here; refabric says if it is of another version
    compgen -G "${XDG_CACHE_HOME:-${HOME:-}/.cache}/refabric/kernels/*/linux" >/dev/null
}

lock() { # file, where: waits for another setup/install.sh. Others cannot open the file, so they cannot lock it.
    local holder
    (umask 077 && : >>"$1") 2>/dev/null || return 1
    exec 9<>"$1"
    if ! flock -n 9; then
        holder=$(tr -dc 0-9 <"$1")
        printf 'setup: another setup/install.sh (process %s) is at work %s; waiting for it\n' "${holder:-?}" "$2" >&2
        flock -w 900 9 ||
            unfit "another setup/install.sh (process ${holder:-?}) has been running for 15 minutes; end it and try again"
    fi
    printf '%s\n' "$$" >"$1"
}

apt() {
    # Close this script's lock (9): a daemon that a package starts would keep it forever.
    DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1 </dev/null 9<&-
}

get() {
    # Try the present package lists first; an unreachable source must not make an update fail.
    apt install -y --no-install-recommends "$@" && return
    apt update || true
    apt install -y --no-install-recommends "$@"
}

install_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        unfit "this is not Debian or Ubuntu: install ${packages[*]} by hand on a Debian 12+ or Ubuntu 24.04+ machine"
    fi
    local missing more=()
    missing=$(missing_packages "${packages[@]}")
    if [ "$(id -u)" != 0 ]; then
        [ -z "$missing" ] || unfit "missing packages: $missing- run: sudo setup/install.sh$for_guests"
        return 0
    fi
    [ "$simulator$guests" != nono ] || more=("${bpf_packages[@]}" "${ovs_packages[@]}" bridge-utils)
    [ -n "$missing$(missing_packages "${more[@]}")" ] || return 0
    lock "$root_lock" "on this machine" || unfit "$root_lock cannot be written"
    missing=$(missing_packages "${packages[@]}")
    if [ -n "$missing" ]; then
        printf 'setup: installing %s\n' "$missing" >&2
        log=$(mktemp)
        # shellcheck disable=SC2086 # one word per package
        if ! get $missing; then
            tail -n 15 "$log" >&2
            unfit "apt-get could not install: $missing- repair what it reports above, then run setup/install.sh again"
        fi
        rm -f -- "$log"
    fi
    if [ ${#more[@]} -gt 0 ]; then
        install_optional "MPTCP will run uncoupled reno" "${bpf_packages[@]}"
        install_ovs
        # For stock Mininet's Linux bridges; no run of refabric needs them.
        install_optional "stock mn has no --switch lxbr" bridge-utils
    fi
    exec 9>&-
}

install_optional() { # what is lacking without them, packages
    local without=$1 missing
    shift
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$quiet" = yes ] && grep -qxF -- "$*" "$root_failed" 2>/dev/null; then return 0; fi
    log=$(mktemp)
    printf 'setup: installing %s\n' "$missing" >&2
    # shellcheck disable=SC2086 # one word per package
    if ! get $missing; then
        printf '%s\n' "$*" >>"$root_failed"
        printf 'setup: apt-get could not install %s(%s); to repair: sudo apt-get update && sudo setup/install.sh\n' "$missing" "$without" >&2
    fi
    rm -f -- "$log"
}

become_owner() { # arguments of this script
    # Root makes no file in a clone of an ordinary user, who goes on from here.
    [ "$(id -u)" = 0 ] || return 0
    local uid gid entry variable home=/nonexistent groups=--clear-groups
    uid=$(stat -c %u "$root")
    [ "$uid" != 0 ] || return 0
    gid=$(stat -c %g "$root")
    [ "$gid" != 0 ] || gid=$uid
    if entry=$(getent passwd "$uid"); then
        IFS=: read -r _ _ _ gid _ home _ <<<"$entry"
        groups=--init-groups
    fi
    for variable in $(compgen -e); do
        case $variable in
            TERM | LANG | PIP_* | *_proxy | *_PROXY | SSL_CERT_* | REQUESTS_CA_BUNDLE) ;;
            *) unset "$variable" 2>/dev/null || true ;;
        esac
    done
    export HOME=$home PATH=$system_path
    clean_up
    exec setpriv --reuid "$uid" --regid "$gid" "$groups" --no-new-privs \
        "$root/setup/install.sh" --after-packages "$@"
}

lock_clone() {
    # Taken when there is something to do; callers look again whether it has been done meanwhile.
    [ "$locked" = no ] || return 0
    local path foreign=
    lock "$root/.setup-lock" "in this clone" ||
        unfit "$root belongs to $(stat -c %U "$root"): run setup/install.sh as that user, or: sudo setup/install.sh"
    locked=yes
    for path in "$venv" "$venv-docs" "$root"/build/cp3* "$root/.pox" "$bpf/objects"; do
        [ ! -e "$path" ] || [ -z "$(find "$path" ! -user "$(id -u)" -print -quit)" ] || foreign+=" $(printf %q "$path")"
    done
    [ -z "$foreign" ] || unfit "an earlier setup/install.sh made files of another user: run  sudo rm -rf$foreign"
}

fingerprint() {
    # Hash of the given files, the location of the tree, and the version of Python.
    { "$python" -V; printf '%s\n' "$root"; cat "$@"; } | sha256sum | cut -c1-16
}

core_sources() {
    find "$root/fabric" \( -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name CMakeLists.txt \) -print0 | sort -z |
        xargs -0 cat -- "$root/pyproject.toml" "$root/requirements.txt"
}

is_current() { [ -f "$venv/.refabric-$1" ] && [ "$(cat "$venv/.refabric-$1")" = "$2" ]; }

run_logged() {
    local what=$1
    shift
    log=$(mktemp)
    printf 'setup: %s\n' "$what" >&2
    count_compiled "$log" 9<&- &
    counter=$!
    if ! "$@" >"$log" 2>&1 </dev/null; then
        stop_counting
        tail -n 40 "$log" >&2
        unfit "$what failed: '$*' (its last lines are above)"
    fi
    stop_counting
    rm -f -- "$log"
}

count_compiled() {
    # Prints how many steps ninja has completed, by its output in the log: in place on a terminal, else every half
    # minute. Ends when the log is removed or this script has ended.
    local second=0 counts printed=
    trap - EXIT INT TERM HUP
    while sleep 1 && [ -f "$1" ] && [ -d "/proc/$$" ]; do
        second=$((second + 1))
        [ -t 2 ] || [ $((second % count_every_s)) = 0 ] || continue
        counts=$(grep -oE '^ *\[[0-9]+/[0-9]+\]' "$1" | tail -n 1 | tr -d '[] ' || true)
        [ -n "$counts" ] && [ "$counts" != "$printed" ] || continue
        printed=$counts
        if [ -t 2 ]; then
            printf '\rsetup: %s of %s steps, %s s ' "${counts%/*}" "${counts#*/}" "$second" >&2
        else
            printf 'setup: %s of %s steps after %s s\n' "${counts%/*}" "${counts#*/}" "$second" >&2
        fi
    done
}

stop_counting() {
    [ -n "$counter" ] || return 0
    kill "$counter" 2>/dev/null || true
    wait "$counter" 2>/dev/null || true
    counter=
    [ ! -t 2 ] || printf '\r\033[K' >&2
}

# What pip, git and the resolver print when the server cannot be reached.
unreachable='NewConnectionError|Temporary failure in name resolution|Name or service not known|Network is unreachable|ConnectTimeout|Could not resolve host'

fetch_python() {
    # Installs pinned packages: each file must have one of the hashes of the lock file. Binary wheels run no code when
    # they are installed. Packages without a wheel are built with the packages installed before them.
    local what=$1 lock=$2
    shift 2
    log=$(mktemp)
    printf 'setup: %s\n' "$what" >&2
    if ! "${into:-$venv}/bin/pip" install --disable-pip-version-check --retries 2 --ignore-installed --no-deps \
        --require-hashes "$@" --requirement "$lock" >"$log" 2>&1 </dev/null; then
        ! grep -qE "$unreachable" "$log" ||
            unfit "$what: the package index cannot be reached; connect this machine and run setup/install.sh again"
        tail -n 40 "$log" >&2
        unfit "$what failed (its last lines are above); run setup/install.sh again"
    fi
    rm -f -- "$log"
}

install_environment() {
    local wanted
    wanted=$(fingerprint "$root/requirements.txt" "$root/setup/requirements-source.txt")
    is_current environment "$wanted" && return 0
    lock_clone
    is_current environment "$wanted" && return 0
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        unfit "$("$python" -V) is too old: Python 3.11 is needed (Debian 12+, Ubuntu 24.04+)"
    rm -f -- "$venv"/.refabric-*
    rm -rf -- "$venv"
    run_logged "making .venv" "$python" -m venv --system-site-packages "$venv"
    fetch_python "installing the pinned Python packages" "$root/requirements.txt" --only-binary :all:
    fetch_python "building the packages that have no wheel" "$root/setup/requirements-source.txt" \
        --no-binary :all: --no-build-isolation --use-pep517
    printf '%s\n' "$wanted" >"$venv/.refabric-environment"
}

install_docs() {
    # The site's tools have an environment of their own: no experiment needs them or depends on their versions.
    local wanted into=$root/.venv-docs
    wanted=$(fingerprint "$root/docs/site/requirements.txt")
    [ "$(cat "$into/.refabric-docs" 2>/dev/null)" != "$wanted" ] || return 0
    lock_clone
    [ "$(cat "$into/.refabric-docs" 2>/dev/null)" != "$wanted" ] || return 0
    rm -rf -- "$into"
    run_logged "making .venv-docs" "$python" -m venv "$into"
    fetch_python "installing MkDocs" "$root/docs/site/requirements.txt" --only-binary :all:
    printf '%s\n' "$wanted" >"$into/.refabric-docs"
}

modules_are_in_place() {
    # The editable install lists the path of every module. One that has moved since cannot be imported.
    local finder path
    finder=$(echo "$venv"/lib/python3*/site-packages/_editable_skbc_refabric.py)
    [ -f "$finder" ] || return 1
    while IFS= read -r path; do
        [ -e "$path" ] || return 1
    done < <(grep -o "'$root/[^']*'" "$finder" | tr -d "'")
}

core_is_current() { # fingerprint of its sources
    # Nothing that runs needs the stub, so a user who cannot write it does without.
    is_current core "$1" && modules_are_in_place && { [ -s "$(stub)" ] || [ ! -w "$(dirname "$(stub)")" ]; }
}

stub() { # its path, also before it exists
    local beside
    beside=$(echo "$venv"/lib/python3*/site-packages/fabric)
    echo "$beside/_core.pyi"
}

describe_core() {
    # The stub, beside the core, tells mypy and editors what is in it.
    run_logged "describing the fabric core" "$venv/bin/python" -m nanobind.stubgen --quiet --exclude-values \
        --module fabric._core --output-file "$(stub)" --marker-file "$(dirname "$(stub)")/py.typed"
}

install_core() {
    local wanted
    wanted=$(core_sources | fingerprint -)
    core_is_current "$wanted" && return 0
    lock_clone
    core_is_current "$wanted" && return 0
    if is_current core "$wanted" && modules_are_in_place; then
        describe_core
        return 0
    fi
    rm -f -- "$venv/.refabric-core"
    run_logged "building the fabric core (about a minute)" "$venv/bin/pip" install --verbose --disable-pip-version-check \
        --no-build-isolation --no-deps --editable "$root"
    describe_core
    # Compile now, so that no process of root finds byte code to write in the clone.
    "$venv/bin/python" -m compileall -q "${packages_of_ours[@]/#/$root/}" >/dev/null || true
    printf '%s\n' "$wanted" >"$venv/.refabric-core"
}

uncoupled() { printf 'setup: %s: MPTCP will run uncoupled reno; to repair: %s\n' "$1" "$2" >&2; }

compile_bpf() {
    # Works on any kernel and CPU of this byte order: offsets of kernel structures are resolved when loading.
    local source objects=$bpf/objects
    rm -rf "$objects" && mkdir -p "$objects"
    for source in "$bpf"/bpf/*.bpf.c; do
        clang -target bpf -mcpu=v3 "-I$root/fabric" -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror \
            -idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$source" \
            -o "$objects/$(basename "$source" .bpf.c).o" || return 1
    done
}

install_bpf() {
    # A failure here does not make the machine unfit. Calls with --quiet do not retry it.
    local wanted missing
    wanted=$(cat "$bpf"/bpf/* "$root"/fabric/ccp/*.h | fingerprint -)
    if is_current bpf "$wanted" && [ -d "$bpf/objects" ]; then return 0; fi
    if [ "$quiet" = yes ] && is_current bpf "failed $wanted"; then return 0; fi
    lock_clone
    if is_current bpf "$wanted" && [ -d "$bpf/objects" ]; then return 0; fi
    printf 'failed %s\n' "$wanted" >"$venv/.refabric-bpf"
    missing=$(missing_packages "${bpf_packages[@]}")
    if [ -n "$missing" ]; then
        uncoupled "missing packages: $missing" "sudo setup/install.sh"
        return 0
    fi
    log=$(mktemp)
    printf 'setup: compiling the BPF programs\n' >&2
    if compile_bpf >"$log" 2>&1 </dev/null; then
        printf '%s\n' "$wanted" >"$venv/.refabric-bpf"
    else
        tail -n 15 "$log" >&2
        rm -rf "$bpf/objects"
        uncoupled "clang could not compile $bpf/bpf (above)" "setup/install.sh"
    fi
    rm -f -- "$log"
}

# The machine's own policy-rc.d, if any, is kept beside ours as policy-rc.d.refabric. If this script is killed, the next
# one restores it. Another clone's setup/install.sh may have its policy-rc.d there at the same time.
policy_owner() { # prints nothing where there is no policy-rc.d, as on most machines
    [ ! -e "$policy" ] || sed -n 's/^# refabric setup \([0-9]*\)$/\1/p; s/^if \[ -d \/proc\/\([0-9]*\) \].*/\1/p' "$policy" | head -n 1
}

policy_away() {
    # Until policy_back or the end of this process, no package may start a daemon (invoke-rc.d(8)). Fails where that
    # would overwrite something.
    policy_back
    [ -z "$(policy_owner)" ] || return 1
    if [ -e "$policy" ]; then
        [ ! -e "$policy.refabric" ] || return 1
        ln -- "$policy" "$policy.refabric" || return 1   # a link: there is no moment at which the file is missing
    fi
    printf '#!/bin/sh\n# refabric setup %s\nif [ -d /proc/%s ]; then exit 101; fi\n' "$$" "$$" >"$policy.new.$$"
    chmod 755 "$policy.new.$$"
    mv -- "$policy.new.$$" "$policy"
}

policy_back() {
    # Removes ours, and one of a setup/install.sh that was killed. Restores the saved one, but overwrites nothing else.
    [ "$(id -u)" = 0 ] || return 0
    local owner
    owner=$(policy_owner)
    if [ -n "$owner" ]; then
        if [ "$owner" != "$$" ] && [ -d "/proc/$owner" ]; then return 0; fi
        if [ -e "$policy.refabric" ]; then mv -- "$policy.refabric" "$policy"; else rm -f -- "$policy"; fi
    elif [ -e "$policy.refabric" ] && { [ ! -e "$policy" ] || [ "$policy" -ef "$policy.refabric" ]; }; then
        mv -- "$policy.refabric" "$policy"
        rm -f -- "$policy.refabric"   # rename(2) keeps both names of one file
    fi
}

no_ovs() { printf 'setup: %s: --dataplane ovs is unavailable; to repair: %s\n' "$1" "$2" >&2; }

install_ovs() {
    # A failure here does not make the machine unfit. Calls with --quiet do not retry it.
    local missing
    missing=$(missing_packages "${ovs_packages[@]}")
    [ -n "$missing" ] || return 0
    if [ "$quiet" = yes ] && grep -qxF -- "${ovs_packages[*]}" "$root_failed" 2>/dev/null; then return 0; fi
    printf 'setup: installing %s(its service is neither started nor enabled)\n' "$missing" >&2
    if ! policy_away; then
        printf '%s\n' "${ovs_packages[*]}" >>"$root_failed"
        no_ovs "$policy and $policy.refabric are not what one setup/install.sh left" "keep the right one of them as $policy, remove the other, and run sudo setup/install.sh"
        return 0
    fi
    log=$(mktemp)
    # shellcheck disable=SC2086 # one word per package
    if get $missing; then
        not_at_boot openvswitch-switch ovs-record-hostname
    else
        printf '%s\n' "${ovs_packages[*]}" >>"$root_failed"
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

install_ims() {
    local missing
    missing=$(missing_packages "${ims_packages[@]}")
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || unfit "missing packages: $missing- run: sudo setup/install.sh --ims"
    lock "$root_lock" "on this machine" || unfit "$root_lock cannot be written"
    missing=$(missing_packages "${ims_packages[@]}")
    [ -n "$missing" ] || return 0
    printf 'setup: installing %s(no service is started or enabled)\n' "$missing" >&2
    policy_away || unfit "$policy and $policy.refabric are not what one setup/install.sh left: keep the right one of them as $policy, remove the other, and run sudo setup/install.sh --ims"
    log=$(mktemp)
    # shellcheck disable=SC2086 # one word per package
    get $missing || unfit "apt-get could not install $missing- run: sudo apt-get update && sudo setup/install.sh --ims"
    not_at_boot kamailio redis-server
    policy_back
    rm -f -- "$log"
}

fetch_pox() {
    rm -rf "$root/.pox" && git init --quiet "$root/.pox" &&
        timeout 120 git -C "$root/.pox" fetch --quiet --depth 1 "$pox_source" "$pox_commit" &&
        git -C "$root/.pox" -c advice.detachedHead=false checkout --quiet FETCH_HEAD
}

has_pox() { [ -d "$root/.pox/.git" ] && [ "$(git -C "$root/.pox" rev-parse HEAD)" = "$pox_commit" ]; }

install_pox() {
    ! has_pox || return 0
    lock_clone
    ! has_pox || return 0
    command -v git >/dev/null || unfit "POX is fetched with git, which is missing: sudo apt-get install git"
    log=$(mktemp)
    printf 'setup: fetching POX\n' >&2
    if ! GIT_TERMINAL_PROMPT=0 fetch_pox >"$log" 2>&1 </dev/null; then
        rm -rf "$root/.pox"
        grep -qE "$unreachable" "$log" || tail -n 5 "$log" >&2
        unfit "POX could not be fetched from $pox_source: connect this machine, or set POX_DIR to a checkout of its branch halosaur"
    fi
    rm -f -- "$log"
}

main() {
    local argument
    for argument in "$@"; do
        case "$argument" in
            --quiet) quiet=yes ;;
            --simulator) simulator=yes; packages=(python3 python3-venv python3-dev g++ cmake) ;;
            --guests) guests=yes
                kernel_is_built || { packages+=("${kernel_packages[@]}"); for_guests=" --guests"; } ;;
            --pox) pox=yes ;;
            --ims) ims=yes ;;
            --docs) docs=yes ;;
            --after-packages) after_packages=yes ;; # root has installed what it could
            *) printf 'usage: setup/install.sh [--quiet] [--simulator|--guests] [--pox] | --ims | --docs\n' >&2; exit 2 ;;
        esac
    done
    trap clean_up EXIT
    trap interrupted INT TERM HUP
    cd "$root" # python -m imports from the current folder first
    policy_back
    if [ "$ims" = yes ]; then
        install_ims
        return
    fi
    [ "$docs$after_packages" != nono ] || install_packages
    become_owner "$@"
    if [ "$docs" = yes ]; then
        install_docs
        return
    fi
    install_environment
    install_core
    [ "$simulator$guests" != nono ] || install_bpf
    [ "$pox" = no ] || install_pox
    say "refabric is ready: .venv/bin/refabric"
}

[ "${BASH_SOURCE[0]}" != "$0" ] || main "$@"   # a test reads it for its functions
