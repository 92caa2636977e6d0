"""FabricNet with the stand-in data plane: Mininet's calls, its CLI by pipe, quiet wires; stock Mininet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import topos
from common.errors import HostUnfitError
from engines.emulation.hosts import shell
from engines.emulation.hosts.hosts import HostOptions, steer
from engines.emulation.hosts.network import FabricNet
from engines.emulation.kernel.namespaces import CLONE_NEWNS, call_in_netns, mount, unshare
from engines.emulation.sandbox import client
from model.spec import LinkSpec, RunSpec, TopologySpec
from tests.support.sandboxed import report, reports
from tests.support.scenarios import isolation
from tests.support.two_hosts import ISOLATE, run_isolated

pytestmark = pytest.mark.emulation

ROOT = Path(__file__).resolve().parents[3]
GATEWAY = "10.255.255.254 dev p0e0h0-eth0 lladdr 02:ff:ff:ff:ff:fe PERMANENT"
_SHELL = """
import sys
sys.path.append(sys.argv[1])
import topos
from engines.emulation.hosts.shell import main
from model.spec import LinkSpec, RunSpec, TopologySpec
spec = RunSpec(LinkSpec(10.0), TopologySpec(*topos.parse(sys.argv[2])))
sys.exit(main(spec, wait_s=60, factory="tests.support.dataplanes.python_dataplane:make"))
"""


def pipe_to_shell(*commands: str, topology: str = "ft,4", cwd: Path = Path("/")) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _SHELL, str(ROOT), topology],
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_a_namespace_gives_its_children_reaches_every_host() -> None:
    for seen in reports(isolation.tcp_tables):
        assert set(seen["entries"]) == {1024}


def test_mininet_calls_and_only_ip_on_the_wires_and_nothing_left_after_stop() -> None:
    seen = report(isolation.mininet_face)
    topology = topos.build("ft", {"k": 4})
    assert seen["names"] == sorted(node.name for node in topology.nodes)
    assert seen["refs"] == 16
    assert "1 received" in seen["ping"]
    assert seen["all"] == 0
    assert seen["down"] == 100
    assert seen["status"] == ["(DOWN DOWN)", "(OK OK)"]
    assert seen["healed"] == 0
    assert seen["sysctls"] == {"net.ipv4.tcp_no_metrics_save": "1", "net.ipv4.tcp_congestion_control": "reno"}
    assert "p3e1h1-eth0" in seen["popen"]
    assert seen["switch"].strip() == "hello"
    assert GATEWAY in seen["route"]
    assert "inet6" not in seen["route"]
    assert seen["kinds"] == [0x0800], "no ARP, no IPv6"
    assert seen["after"] == ["lo"]
    assert seen["pids"] == [1, 2]


def test_tcp_sends_frames_of_wire_size() -> None:
    seen = report(isolation.tcp_frames)
    assert seen["exit"] == 0
    assert seen["longest"] == 1514


def test_offloads() -> None:
    seen = report(isolation.offloads)
    assert not [name for name in seen["with"] if name.endswith("segmentation") or name == "rx-gro"]
    assert "tx-checksum-ip-generic" in seen["with"]
    assert "tx-checksum-ip-generic" not in seen["without"]


def test_dual_homed_hosts_use_both_wires() -> None:
    seen = report(isolation.dual_homed)
    assert set(seen["statuses"]) == {"0"}
    assert "lookup 101" in seen["rules"]


def test_sysctl_the_kernel_lacks_is_a_clear_error() -> None:
    with pytest.raises(HostUnfitError, match=r"net.ipv4.no_such=1 in the namespace of p0e0h0"):
        report(isolation.bad_sysctl)


@pytest.mark.machine
def test_piped_commands() -> None:
    text = pipe_to_shell(
        "nodes", "p0e0h0 ping -c1 -W2 p3e1h1", "link p0e0h0 p0e0 down", "p0e0h0 ping -c1 -W1 p3e1h1",
        "link p0e0h0 p0e0 up", "p0e0h0 ping -c1 -W2 p3e1h1", "net", "dump", "links", "bogus", "p0e0 echo hi",
        "exit",
    )  # fmt: skip
    assert text.count("1 received") == 2
    assert text.count("100% packet loss") == 1
    assert "p0e0 p0e0-eth1:p0e0h0-eth0 p0e0-eth2:p0e0h1-eth0" in text
    assert "<FabricHost p0e0h0: p0e0h0-eth0:10.0.0.2 pid=" in text
    assert "Unknown command: bogus" in text
    assert "\nhi" in text


@pytest.mark.machine
def test_pingall_and_iperf_through_the_shell() -> None:
    text = pipe_to_shell("pingall 2", "iperf p0e0h0 p1e0h0")
    assert "0% dropped (240/240 received)" in text
    assert "bits/sec" in text


@pytest.mark.machine
def test_slips_at_the_prompt_are_named_and_the_network_stays(tmp_path: Path) -> None:
    script = tmp_path / "commands"
    script.write_text("# a comment\np0e0h0 echo from-the-file\nexit\np0e0h0 echo after-its-end\n")
    refused = {
        "source /no/such/file": "source /no/such/file: No such file",
        "source .": "Is a directory",
        "py net.addLink('p0e0h0', 'p0e0')": "refabric shell file:net.json",
        "py net.addSwitch('s9')": "refabric shell file:net.json",
        "py net.delLink(net.links[0])": "refabric shell file:net.json",
        "py net.links[0].intf1.config(bw=5)": "bw cannot be changed",
        "py p0e0h0.setIP('10.9.9.9')": "keeps its address",
        "px raise SystemExit(3)": "*** 3",
        "x nosuchhost": "nosuchhost",
    }
    seen = pipe_to_shell(
        *refused, "p0e0h0 echo still-here", "source commands", "p0e0h0 echo not-reached", cwd=tmp_path
    )
    for command, words in refused.items():
        assert words in seen, command
    assert "still-here" in seen and "from-the-file" in seen
    assert "after-its-end" not in seen and "not-reached" not in seen


@pytest.mark.machine
@pytest.mark.parametrize(("topology", "interface"), [("ft,4", "p0e0h0-eth0"), ("dhft,4", "p0e0h0-eth1")])
def test_an_interface_taken_down_and_up_has_its_routes_again(topology: str, interface: str) -> None:
    host = interface.partition("-")[0]
    routes = f"{host} ip route show table all | grep ^default"
    turn = f"{host} ip link set {interface} down; ip link set {interface} up; sleep 0.1"
    seen = pipe_to_shell(routes, f"{host} echo then", turn, routes, topology=topology)
    before, after = seen.split("then\n")
    assert f"dev {interface}" in before
    assert sorted(after.splitlines()) == sorted(before.splitlines())


def test_without_root_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(client, "_client", None)
    with pytest.raises(HostUnfitError, match="sudo refabric shell ft,4"):
        shell.main(RunSpec(LinkSpec(10.0), TopologySpec("fat_tree", {"k": 4})), "refabric shell ft,4")


def masks_are_written_in_every_namespace() -> None:
    with FabricNet(topos.build("star", {"n": 3}), options=HostOptions()) as net:
        hosts = net.host_refs()
        before = Path("/proc/self/mounts").read_text()
        steer([host.pid for host in hosts], "1")
        assert Path("/proc/self/mounts").read_text() == before
        for host in hosts:
            assert [int(mask, 16) for mask in call_in_netns(host.pid, masks)] == [1]


def masks() -> list[str]:
    unshare(CLONE_NEWNS)
    mount("sysfs", "/sys", "sysfs")
    return [p.read_text() for p in Path("/sys/class/net").glob("*-eth*/queues/rx-*/rps_cpus")]


def test_steering_through_sysfs() -> None:
    run_isolated(masks_are_written_in_every_namespace)


CUSTOM = "topos/mininet_topos.py,tests/support/dataplanes/null_switch.py"


def mn(topology: str) -> subprocess.CompletedProcess[str]:
    """Run `mn` in private namespaces, because it deletes files in /tmp by name when it fails."""
    command = (
        f"mount -t tmpfs none /tmp && exec /usr/bin/python3 /usr/bin/mn --custom {CUSTOM} --topo {topology}"
    )
    argv = [*ISOLATE, "sh", "-c", f"{command} --switch null --controller none --test none"]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("topology", "last_host"),
    [("ft,4", "p3e1h1"), ("dhft,4", "p3e2h2"), ("star,3", "s1h2"), ("db,2,lanes=2", "r1h1")],
)
def test_mn_builds_it(topology: str, last_host: str) -> None:
    done = mn(topology)
    assert done.returncode == 0, done.stderr
    assert last_host in done.stdout + done.stderr


def test_a_wrong_parameter_is_one_clear_line() -> None:
    done = mn("ft,5")
    assert done.returncode == 1
    assert "even number" in done.stderr
    assert "Traceback" not in done.stderr
