"""Receive steering by each namespace's own sysfs, as kernels before 6.3 need it."""

from __future__ import annotations

from pathlib import Path

import pytest

import topos
from engines.emulation.hosts.hosts import HostOptions, steer
from engines.emulation.hosts.network import FabricNet
from engines.emulation.kernel.namespaces import CLONE_NEWNS, call_in_netns, mount, unshare
from tests.support.two_hosts import run_isolated

pytestmark = pytest.mark.emulation


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
