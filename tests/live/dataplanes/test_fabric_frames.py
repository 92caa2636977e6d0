"""The core between real veth ends: no frame lost, duplicated, reordered or corrupted."""

from __future__ import annotations

import random
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from engines.emulation.kernel.namespaces import call_in_netns
from fabric._core import RealtimeFabric
from fabric.plan import NetworkPlan
from fabric.readings import Snapshot
from model.links import downlink, uplink
from model.network_plan import QUEUE_NUMBERS, plan_for
from model.spec import LinkSpec, RunSpec, TopologySpec
from tests.support.core_networks import ip, one_switch
from tests.support.machine_noise import exact
from tests.support.two_hosts import run_isolated
from tests.support.waiting import until

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

ETH_P_ALL = 3
GATEWAY = bytes.fromhex("02ffffffff00")
HOSTS = 3
MACS = [f"02:00:00:00:00:{i:02x}" for i in range(HOSTS)]


class Lab(NamedTuple):
    fabric: RealtimeFabric
    ends: list[socket.socket]

    def settled(self, sent: int) -> Snapshot:
        """Return the counters once all `sent` frames have come in and none is in flight."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            snapshot = self.fabric.snapshot()
            if snapshot["injected"] >= sent and not snapshot["in_flight"]:
                break
            time.sleep(0.01)
        return snapshot


@contextmanager
def lab(
    rate_bps: int = 1_000_000_000,
    ecn_pkts: int = 0,
    slow_bps: int = 0,
    sample_ms: float = 0.0,
    plan: NetworkPlan | None = None,
) -> Iterator[Lab]:
    """Yield a running fabric, and raw sockets on three host ends in a namespace of their own.

    The hosts are on one switch, or in the network of `plan`. Where `slow_bps` is not 0, ports to hosts have
    that rate and serve by strict priority."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "60"])
    wait_for_namespace(holder.pid)
    for i in range(HOSTS):
        run(f"ip link add n{i} type veth peer name h{i} netns {holder.pid} address {MACS[i]}")
        run(f"ip link set n{i} up")
    ends = [call_in_netns(holder.pid, partial(open_end, f"h{i}")) for i in range(HOSTS)]
    plan = plan or one_switch(HOSTS, rate_bps=rate_bps, queue_pkts=1000, ecn_pkts=ecn_pkts)
    if slow_bps:
        plan.rate_bps[plan.nic_downlink] = slow_bps
        plan.discipline[plan.nic_downlink] = QUEUE_NUMBERS["priority"]
    indices = [socket.if_nametoindex(f"n{i}") for i in range(HOSTS)]
    fabric = RealtimeFabric(plan, indices, MACS, sample_ms=sample_ms)
    fabric.start()
    try:
        yield Lab(fabric, ends)
    finally:
        fabric.stop()
        holder.kill()
        holder.wait()


def run(command: str) -> None:
    subprocess.run(command.split(), check=True)


def wait_for_namespace(pid: int) -> None:
    mine = Path("/proc/self/ns/net").readlink()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}/ns/net").readlink() == mine:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def open_end(name: str) -> socket.socket:
    subprocess.run(["ip", "link", "set", name, "up"], check=True)
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    end.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    end.bind((name, ETH_P_ALL))
    return end


def udp_frame(src: int, dst: int, payload: bytes, tos: int = 0, number: int = 0) -> bytes:
    """Return a frame. `number` is the IP header's identification, by which it can have any checksum."""
    source, destination = struct.pack("!I", ip("10.0.0.1") + src), struct.pack("!I", ip("10.0.0.1") + dst)
    fields = 0x45, tos, 28 + len(payload), number, 0, 64, 17
    header = struct.pack("!BBHHHBBH4s4s", *fields, 0, source, destination)
    header = struct.pack("!BBHHHBBH4s4s", *fields, ip_checksum(header), source, destination)
    udp = struct.pack("!HHHH", 1000 + src, 2000 + dst, 8 + len(payload), 0)
    return GATEWAY + bytes.fromhex(MACS[src].replace(":", "")) + b"\x08\x00" + header + udp + payload


def ip_checksum(header: bytes) -> int:
    """Return the checksum of RFC 1071, which is 0 for a header that holds its own correct checksum."""
    words: tuple[int, ...] = struct.unpack(f"!{len(header) // 2}H", header)
    return -sum(words) % 0xFFFF


def next_ipv4(end: socket.socket) -> bytes:
    """Return the next IPv4 frame; skip the kernel's own neighbour discovery."""
    end.settimeout(5)
    while (frame := end.recv(4096))[12:14] != b"\x08\x00":
        pass
    return frame


def received(end: socket.socket) -> Iterator[bytes]:
    end.setblocking(False)
    while True:
        try:
            frame = end.recv(4096)
        except BlockingIOError:
            return
        if frame[12:14] == b"\x08\x00":
            yield frame


def every_frame_arrives_once_in_order_and_whole() -> None:
    rng = random.Random(7)
    sent: dict[tuple[int, int], list[bytes]] = {}
    with lab() as (fabric, ends):
        count = 30_000
        for number in range(count):
            src, dst = rng.sample(range(HOSTS), 2)
            payload = number.to_bytes(4, "big") + rng.randbytes(rng.choice([0, 1, 60, 700, 1468]))
            frame = udp_frame(src, dst, payload)
            ends[src].send(frame)
            sent.setdefault((src, dst), []).append(bytes.fromhex(MACS[dst].replace(":", "")) + frame[6:])
            if number % 20 == 0:
                time.sleep(0.001)
        snapshot = Lab(fabric, ends).settled(count)
        got: dict[tuple[int, int], list[bytes]] = {}
        for dst, end in enumerate(ends):
            for frame in received(end):
                got.setdefault((frame[11], dst), []).append(frame)
    with exact():
        assert snapshot["injected"] == snapshot["delivered"] == count
        assert snapshot["ring_drops"] == snapshot["send_refused"] == snapshot["dropped"] == 0
        assert got == sent


def a_frame_takes_its_transmission_times() -> None:
    with lab(rate_bps=1_000_000) as (fabric, ends):
        frame = udp_frame(0, 1, bytes(1208))  # 1250 bytes: 10 ms on each of two links
        started = time.monotonic()
        for _ in range(5):
            ends[0].send(frame)
        assert len(next_ipv4(ends[1])) == 1250
        first = time.monotonic() - started
        for _ in range(4):
            next_ipv4(ends[1])
        last = time.monotonic() - started
        assert first >= 0.0199
        assert last >= 0.0599
        snapshot = fabric.snapshot()
        assert snapshot["hops"] == 10
        assert int(np.sum(snapshot["lateness"])) == 5


def odd_frames_are_counted_not_carried() -> None:
    with lab() as (fabric, ends):
        arp = GATEWAY + bytes(6) + b"\x08\x06" + bytes(46)
        ends[0].send(arp)
        ends[0].send(udp_frame(0, 77, b"nobody"))
        ends[0].send(b"\xff" * 14)
        until(lambda: fabric.snapshot()["not_ipv4"] >= 2, 20.0, "both frames without IPv4 are counted")
        snapshot = fabric.snapshot()
        with exact():
            assert snapshot["no_such_host"] == 1
            assert snapshot["injected"] == 0


def tagged_frames_are_counted_not_carried() -> None:
    """A tag that is taken off on the way would turn one network's frame into another's."""
    plain = udp_frame(0, 1, b"tagged")
    tag = struct.pack("!HH", 0x8100, 7)
    with lab() as (fabric, ends):
        ends[0].send(plain[:12] + tag + plain[12:])
        ends[0].send(plain[:12] + struct.pack("!HH", 0x88A8, 7) + tag + plain[12:])
        ends[0].send(plain)
        snapshot = Lab(fabric, ends).settled(1)
        with exact():
            assert snapshot["vlan_tagged"] == 2
            assert snapshot["injected"] == 1
            assert next_ipv4(ends[1])[14:] == plain[14:]


def frame_with_checksum(checksum: int, payload: bytes, tos: int) -> bytes:
    plain = udp_frame(0, 1, payload, tos)
    frame = udp_frame(
        0, 1, payload, tos, number=(ip_checksum(plain[14:24] + plain[26:34]) - checksum) % 0xFFFF
    )
    assert frame[24:26] == struct.pack("!H", checksum)
    return frame


def a_full_queue_marks_who_can_be_marked() -> None:
    """Send in both directions of the address range, so that the checksum's carries occur too."""
    not_ect, ect1, ect0, ce = range(4)
    dscp = 0xB8
    with lab(rate_bps=100_000, ecn_pkts=4) as (fabric, ends):
        sent = {}
        for number in range(40):  # 10 ms each on the wire
            ecn = number % 4
            payload = number.to_bytes(4, "big") + bytes(79)
            # Small checksums are where adding to them carries.
            sent[number] = frame_with_checksum(number // 4, payload, dscp | ecn), ecn
            ends[0].send(sent[number][0])
        frames = [next_ipv4(ends[1]) for _ in sent]
        marks = int(fabric.snapshot()["marks"].sum())
    fields = {int.from_bytes(frame[42:46], "big"): frame[15] & 3 for frame in frames}
    assert list(fields) == list(sent)
    for number, frame in enumerate(frames):
        before, ecn = sent[number]
        assert ip_checksum(frame[14:34]) == 0
        if fields[number] == ecn:
            assert frame[6:] == before[6:]
        else:
            assert (ecn in {ect0, ect1}, fields[number], frame[15] & 0xFC) == (True, ce, dscp)
            assert (frame[6:15], frame[16:24], frame[26:]) == (before[6:15], before[16:24], before[26:])
    marked = [number for number, field in fields.items() if field != sent[number][1]]
    assert marks == len(marked)
    assert min(marked) >= 4
    assert len(marked) >= 15, "only a machine that paused while sending leaves the queue short"
    assert all(fields[number] == not_ect for number, (_, ecn) in sent.items() if ecn == not_ect)


def a_frame_of_a_higher_class_overtakes_those_that_wait() -> None:
    expedited = 46 << 2
    with lab(slow_bps=100_000) as (_, ends):
        classes = [0] * 6 + [expedited] * 2  # 10 ms each on the wire
        for number, tos in enumerate(classes):
            ends[0].send(udp_frame(0, 1, bytes([number]) + bytes(82), tos))
        order = [next_ipv4(ends[1])[42] for _ in classes]
    overtaken = order.index(6)
    assert overtaken < 4, "the machine paused while the frames were sent"
    assert order == [*range(overtaken), 6, 7, *range(overtaken, 6)]


def a_cut_link_carries_nothing_until_it_heals() -> None:
    with lab() as (fabric, ends):
        fabric.set_port_up(0, False)
        ends[0].send(udp_frame(0, 1, b"lost"))
        until(lambda: int(fabric.snapshot()["drops"][0]) == 1, 20.0, "the cut port drops the frame")
        fabric.set_port_up(0, True)
        ends[0].send(udp_frame(0, 1, b"seen"))
        Lab(fabric, ends).settled(2)
        assert [frame[-4:] for frame in received(ends[1])] == [b"seen"]
        assert fabric.snapshot()["drops"][0] == 1


def let_pass(fabric: RealtimeFabric, seconds: float) -> None:
    """Wait until the fabric's clock has gone on by `seconds`."""
    end_s = fabric.snapshot()["now_s"] + seconds
    until(lambda: fabric.snapshot()["now_s"] > end_s, 20.0, f"{seconds:g} s of the fabric's time have passed")


def queue_lengths_are_sampled_exactly() -> None:
    with lab(rate_bps=1_000_000, sample_ms=10) as (fabric, ends):
        for _ in range(20):
            ends[0].send(udp_frame(0, 1, bytes(1208)))  # 10 ms each
        until(lambda: fabric.snapshot()["delivered"] == 20, 20.0, "the queue has drained")
        times, lengths = fabric.take_samples()
        fabric.sample_every(0)
        fabric.take_samples()
        let_pass(fabric, 0.05)
        assert not len(fabric.take_samples()[0]), "none after the last"
        fabric.sample_every(5)
        let_pass(fabric, 0.1)
        again, idle = fabric.take_samples()
    assert np.allclose(np.diff(again), 0.005)
    assert len(idle) == 2 * HOSTS * len(again) > 2 * HOSTS * 10
    queue = lengths.reshape(len(times), 2 * HOSTS)[:, 0].astype(int)
    assert queue.max() in {19, 20}
    assert set(np.diff(queue[queue.argmax() :])) <= {-1, 0}
    assert np.allclose(np.diff(times), 0.01)


def frames_take_another_path_once_routing_knows() -> None:
    shape = {"leaves": 2, "spines": 2, "hosts": 2, "speed": 1}
    spec = RunSpec(LinkSpec(1000.0), TopologySpec("leaf_spine", shape), routing="spanning-tree")
    topology = spec.network()
    link = topology.link_between(topology.index("l1"), topology.index("s0"))
    whole, without = (three_hosts_of(plan_for(spec, topology, cut)) for cut in ((), (link,)))

    def set_link(fabric: RealtimeFabric, up: bool) -> None:
        for port in (uplink(link), downlink(link)):
            fabric.set_port_up(port, up)

    found = []
    with lab(plan=whole) as (fabric, ends):
        changes: tuple[Callable[[], None], ...] = (
            lambda: None,
            lambda: set_link(fabric, False),
            lambda: fabric.reroute(without),
            lambda: set_link(fabric, True),
            lambda: fabric.reroute(whole),
        )
        for number, change in enumerate(changes):
            change()
            before = fabric.snapshot()
            for _ in range(5):
                ends[0].send(udp_frame(0, 1, b"here"))
            after = Lab(fabric, ends).settled(5 * (number + 1))
            over = int(after["tx_packets"][downlink(link)] - before["tx_packets"][downlink(link)])
            found.append((after["delivered"] - before["delivered"], over))
    with exact():
        assert found == [(5, 5), (0, 0), (5, 0), (5, 0), (5, 5)]


def three_hosts_of(plan: NetworkPlan) -> NetworkPlan:
    """Return the plan of two leaves with two hosts each without the second host."""
    columns = ("nic_attach_node", "nic_attach", "nic_uplink", "nic_downlink")
    kept = {name: getattr(plan, name)[[0, 2, 3]] for name in columns}
    return replace(plan, nic_ip=ip("10.0.0.1") + np.arange(HOSTS, dtype=np.uint32), **kept)


@pytest.mark.parametrize(
    "scenario",
    [
        every_frame_arrives_once_in_order_and_whole,
        a_frame_takes_its_transmission_times,
        odd_frames_are_counted_not_carried,
        tagged_frames_are_counted_not_carried,
        a_full_queue_marks_who_can_be_marked,
        a_frame_of_a_higher_class_overtakes_those_that_wait,
        a_cut_link_carries_nothing_until_it_heals,
        frames_take_another_path_once_routing_knows,
        queue_lengths_are_sampled_exactly,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_real_frames(scenario: object) -> None:
    run_isolated(scenario)  # type: ignore[arg-type]
