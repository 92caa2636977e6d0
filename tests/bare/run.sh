#!/usr/bin/env bash
# Run the two commands in a bare Debian or Ubuntu tree made by debootstrap, as on a new machine.
#
#   tests/bare/run.sh bookworm|trixie|noble [FOLDER [STEPS]]
#
# Needs root, debootstrap, and some 3 GB in FOLDER, which keeps the tree (default: a temporary folder, removed).
# An existing tree FOLDER/SUITE is used: make Ubuntu's tree that way, with its own mirror and keyring and the
# components main,universe. STEPS are numbers (default: 1234). Package mirror, pip's settings and the kernel are
# this machine's. Mounts and processes end with the script.
#
# Steps: (1) without root and packages, one line says what is missing; (2) setup/install.sh, then simulated hosts
# as an ordinary user, with the numbers of docs/start/ten-minutes.md; (3) real hosts, as far as this kernel and
# this machine allow; (4) a kernel without BTF: MPTCP runs uncoupled, and the run says so.
# Passed so far: all steps on Debian 12, Debian 13 and Ubuntu 24.04.
set -euo pipefail

suite=${1:?bookworm, trixie or noble}
steps=${3:-1234}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "bare: chroot needs root" >&2; exit 3; }
command -v debootstrap >/dev/null || { echo "bare: run: sudo apt-get install debootstrap" >&2; exit 3; }
if [ -z "${REFABRIC_BARE:-}" ]; then
    REFABRIC_BARE=1 exec unshare --mount --pid --fork --kill-child --propagation private "${BASH_SOURCE[0]}" "$@"
fi

folder=${2:-$(mktemp -d)}
tree=$folder/$suite
[ -n "${2:-}" ] || trap 'umount -R "$tree" 2>/dev/null; rm -rf "$folder"' EXIT

due() { [[ $steps == *"$1"* ]]; }
fail() { printf 'bare %s: FAILED: %s\n' "$suite" "$*" >&2; exit 1; }
step() { printf 'bare %s: %s\n' "$suite" "$*"; }

mirror() { # the first one that apt uses here
    { grep -hoE '^(deb|URIs:).*' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
        grep -oE 'https?://[^ ]+' | head -n 1
}

inside() { # user, command
    local user=$1 home=/root
    shift
    [ "$user" = root ] || home=/home/$user
    chroot "$tree" /usr/bin/env -i HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        LANG=C.UTF-8 "${settings[@]}" setpriv --reuid "$user" --regid "$user" --clear-groups \
        sh -c "cd /opt/refabric && $*" 2>&1
}

expect() { # exit codes, words, user, command
    local codes=$1 words=$2 said code=0
    shift 2
    said=$(inside "$@") || code=$?
    printf '%s\n' "$said" | tail -n 25 | sed 's/^/    /'
    case " $codes " in *" $code "*) ;; *) fail "exit code $code, not $codes: ${*:2}" ;; esac
    grep -qF -- "$words" <<<"$said" || fail "'$words' is not in the output: ${*:2}"
    ! grep -qF "private namespaces failed" <<<"$said" || fail "no private namespaces: ${*:2}"
}

# What this machine needs to reach its package mirrors; folders of wheels are not in the tree.
settings=()
while IFS= read -r line; do settings+=("$line"); done < <(env | grep -E '^(PIP_|https?_proxy|no_proxy|SSL_)' | grep -vE 'FIND_LINKS|CERT' || true)
settings+=(PIP_CERT=/etc/machine-certificates.pem)

if [ ! -e "$tree/etc/debian_version" ]; then
    step "making the tree"
    mkdir -p "$tree"
    debootstrap --variant=minbase "$suite" "$tree" "$(mirror)" >"$folder/debootstrap-$suite.log" 2>&1 ||
        fail "debootstrap: see $folder/debootstrap-$suite.log"
fi
mount --bind "$tree" "$tree" # so that / inside is a mount, which private namespaces need
mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"
mount --rbind /dev "$tree/dev"
cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
install -m 644 /etc/ssl/certs/ca-certificates.crt "$tree/etc/machine-certificates.pem"
for file in /etc/pip.conf /etc/apt/apt.conf.d/*; do
    [ ! -e "$file" ] || install -D -m 644 "$file" "$tree$file"
done
if due 1 || due 2; then # otherwise the installed clone of an earlier call is used
    rm -rf "$tree/opt/refabric" && mkdir -p "$tree/opt/refabric"
    git -C "$root" archive HEAD | tar -x -C "$tree/opt/refabric"
fi
chroot "$tree" useradd --create-home student 2>/dev/null || true
chroot "$tree" chown -R student:student /opt/refabric

if due 1; then
    step "1: without packages and root"
    if ! chroot "$tree" dpkg-query -W g++ >/dev/null 2>&1; then
        expect 3 "run: sudo setup/install.sh" student ./run_mptcp.sh 4 --engine simulator
    fi
fi
if due 2; then
    step "2: install, then simulated hosts without root"
    expect 0 "refabric is ready" root setup/install.sh
    expect 0 "MPTCP with 8 subflows 94.2 %" student ./run_mptcp.sh 4 --engine simulator --results /tmp/simulated
fi
if due 3; then
    step "3: real hosts (0: ok, 1: suspect, 3: this machine is too busy)"
    expect "0 1 3" "k=4" root ./run_mptcp.sh 4 one_to_one --profile smoke --subflows 1,2 --results /tmp/real
fi
if due 4; then
    step "4: a kernel without BTF"
    mount -t tmpfs none "$tree/sys/kernel/btf" 2>/dev/null || fail "/sys/kernel/btf could not be hidden"
    expect "0 1 3" "uncoupled" root \
        ./run_mptcp.sh 4 one_to_one --profile smoke --subflows 1,2 --rate 2 --results /tmp/uncoupled
fi
step "steps $steps passed"
