"""The engine `linux`: points in guests, agents and subflows on demand in them, guests that end well and that
do not, and what is left of them. Needs no root, but a kernel (`refabric kernel build`)."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engine_fuzz import compared, settings
from ccp.names import OwnAlgorithm
from common.errors import DeadlineError, RunError
from engines.engine import Silent
from engines.linux import guest, launch
from engines.linux.engine import LinuxEngine
from engines.linux.kernel.store import current
from engines.linux.launch import ROOT
from fabric.plan import PAYLOAD_SHARE
from model.reasons import SETTLING
from model.result import RunResult, Status
from model.spec import AgentSpec, LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.live import test_own_programs
from tests.live.dataplanes import test_controllers_live
from tests.live.dataplanes.test_ranks import (
    LONG,
    LOSSY,
    SHORT,
    SHORTS,
    check_completions,
    check_frames,
    check_sender,
)
from tests.support.agents.faults import (
    FIXED,
    SWITCHES,
    WINDOW_PKTS,
    acting,
    agents_reasons,
    check_raised,
    check_reno_went_on,
    check_switches,
    check_window_is_the_agents,
    killed,
    raising,
)
from tests.support.agents.faults import point as agents_point

KERNEL = current()
pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(KERNEL is None, reason="no kernel for guests: run `refabric kernel build`"),
]
NOBODY = 65534
RATE_MBPS = 10.0


def asked(folder: Path, scenario: str, request: object = None, **changes: Any) -> guest.GuestSpec:
    assert KERNEL
    usual = guest.GuestSpec(
        kernel=KERNEL.path,
        memory_mb=512,
        seed=5,
        target=f"tests.support.scenarios.guests:{scenario}",
        request=request,
        folder=folder,
        patience_s=60.0,
        limit_s=600.0,
    )
    return dataclasses.replace(usual, **changes)


def reports(folder: Path, scenario: str, request: object = None, **changes: Any) -> list[Any]:
    found: list[Any] = []
    guest.run(asked(folder, scenario, request, **changes), None, found.append)
    return found


def point(**changes: Any) -> RunSpec:
    usual = RunSpec(
        LinkSpec(RATE_MBPS),
        topology=TopologySpec("fat_tree", {"k": 4}),
        transport=TransportSpec(4, "lia"),
        engine="linux",
        traffic="native",
        warmup_s=2.0,
        seconds=3.0,
    )
    return dataclasses.replace(usual, **changes)


def run(spec: RunSpec, folder: Path) -> RunResult:
    folder.mkdir(parents=True, exist_ok=True)
    engine = LinuxEngine()
    engine.check(spec)
    return engine.run(spec, Silent(), folder)


def rows(result: RunResult) -> list[Any]:
    return [*map(dataclasses.astuple, result.flows), *map(dataclasses.astuple, result.ports)]


def test_a_point_has_all_its_subflows_and_equal_seeds_give_equal_results(tmp_path: Path) -> None:
    first, again = (run(point(), tmp_path / name) for name in ("a", "b"))
    assert first.status is not Status.FAILED
    assert {row.subflows_joined for row in first.flows} == {4}
    assert {row.cc for row in first.flows} == {"lia"}
    assert sum(row.tx_packets for row in first.ports) > 0
    assert first.metrics["cc_acks"] > 0
    assert "cpu_busy_pct" not in first.metrics
    assert rows(first) == rows(again)
    assert first.metrics == again.metrics
    for name, table in first.samples.items():
        assert table == again.samples[name], name
    assert not list((tmp_path / "a").iterdir())
    other = run(point(seed=2), tmp_path / "c")
    assert rows(other) != rows(first)


def test_subflows_that_had_no_time_to_settle_make_a_point_suspect(tmp_path: Path) -> None:
    """2 s are about 10 round trips. The halves of a window may agree all the same."""
    early = run(point(warmup_s=2.0, seconds=2.0, transport=TransportSpec(8, "lia")), tmp_path / "early")
    (reason,) = [reason for reason in early.reasons if reason.kind == SETTLING]
    assert early.status is Status.SUSPECT
    assert 5 < dict(reason.numbers)["round_trips"] < 50
    alone = run(point(warmup_s=2.0, seconds=2.0, transport=TransportSpec(1, "reno")), tmp_path / "alone")
    assert SETTLING not in {reason.kind for reason in alone.reasons}


def test_one_flow_fills_its_link(tmp_path: Path) -> None:
    alone = point(
        transport=TransportSpec(1, "reno"),
        workload=WorkloadSpec("reference"),
        topology=TopologySpec("star", {"n": 2}),
    )
    (row,) = run(alone, tmp_path).flows
    assert row.goodput_mbps == pytest.approx(RATE_MBPS * PAYLOAD_SHARE, rel=0.005)


def test_seeds_decide_all_random_numbers(tmp_path: Path) -> None:
    found = []
    for number, seed in enumerate((5, 5, 6)):
        folder = tmp_path / str(number)
        folder.mkdir()
        found += reports(folder, "look", [], seed=seed)
    first, again, other = found
    assert first == again
    for what in ("boot", "uuid", "bytes", "draw"):
        assert first[what] != other[what], what
    assert first["devices"] == []


def test_a_guest_writes_its_own_folder_only(tmp_path: Path) -> None:
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    theirs.mkdir()
    own.mkdir()
    (seen,) = reports(own, "look", [str(theirs), "/etc", str(ROOT), "/run/point/raw", "/tmp"])
    assert seen["written"] == ["/run/point/raw", "/tmp"]
    assert [path.name for path in own.iterdir()] == ["from-a-guest"]
    assert not list(theirs.iterdir())


@pytest.mark.skipif(not launch.supported(), reason="this kernel has no Landlock")
def test_root_of_a_guest_cannot_write_the_machine_through_a_mount(tmp_path: Path) -> None:
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    theirs.mkdir()
    own.mkdir()
    assert reports(own, "mount_the_machine", str(theirs)) == [{"mounted": True, "written": False}]
    assert not list(theirs.iterdir())


def test_a_panic_is_an_error_with_the_last_lines(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="its kernel panicked: Attempted to kill init!") as found:
        reports(tmp_path, "panic")
    assert not isinstance(found.value, DeadlineError)
    assert "Kernel panic" in (tmp_path / guest.CONSOLE).read_text()


def test_a_guest_whose_clock_stands_still_is_ended(tmp_path: Path) -> None:
    with pytest.raises(DeadlineError, match=r"the guest hangs: its clock has shown \d+ s for \d+ s"):
        reports(tmp_path, "spin", patience_s=8.0)


def test_a_guest_that_takes_too_long_in_its_own_time_is_ended(tmp_path: Path) -> None:
    with pytest.raises(DeadlineError, match="did not end within 50 s of the guest's time"):
        reports(tmp_path, "sleep", 100_000, limit_s=50.0)
    began_s = time.monotonic()
    (tmp_path / guest.CONSOLE).unlink()
    assert reports(tmp_path, "sleep", 500) == [{"slept": 500}]
    assert time.monotonic() - began_s < 250


def test_a_guest_without_memory_says_how_much_it_had(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="it ran out of its 256 MB of memory"):
        reports(tmp_path, "eat", memory_mb=256)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_needs_nothing_more(tmp_path: Path) -> None:
    assert KERNEL
    store = tmp_path / "cache" / "refabric" / "kernels"
    store.mkdir(parents=True)
    subprocess.run(["cp", "-r", KERNEL.path.parent, store], check=True, timeout=60)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    results = tmp_path / "results"
    results.mkdir()
    os.chown(results, NOBODY, NOBODY)
    command = "cs244-one-to-one --engine linux --k 4 --subflows 1 --warmup 2 --seconds 3 --json --results"
    done = subprocess.run(
        [sys.executable, "-m", "experiments.command", "run", *command.split(), str(results)],
        env={**os.environ, "HOME": str(results), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr[-2000:]
    assert re.search(r'"status": ?"ok"', done.stdout), done.stderr[-2000:]


def test_piped_commands_run_in_a_shell_without_root_of_the_machine() -> None:
    commands = "nodes\np0e0h0 ping -c3 -i1 p3e1h1\nexit\n"
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "experiments.command", "shell", "--engine", "linux", "ft,4"],
        cwd=ROOT,
        input=commands,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "p0e0h0" in done.stdout
    assert "3 packets transmitted, 3 received, 0% packet loss" in done.stdout
    assert time.monotonic() - began_s < 250


DELAY_US = 50_000.0
"""Two and a half round trips of the link."""
DOUBLING = """\
        if report.t_us - flow.created_us > 3_000_000 and flow.state is None:
            flow.state = report.t_us
            flow.set(cwnd_bytes=2 * WINDOW * flow.mss)
"""


def under(cc: str, subflows: int = 1, **changes: object) -> RunSpec:
    return dataclasses.replace(agents_point(cc, subflows), engine="linux", **changes)  # type: ignore[arg-type]


def test_the_window_in_a_guest_is_the_agents(tmp_path: Path) -> None:
    result = run(under(OwnAlgorithm("fixed.py", FIXED)), tmp_path)
    check_window_is_the_agents(result)
    assert result.metrics["agent_unreported"] == 0


def test_a_flow_in_a_guest_changes_between_programs(tmp_path: Path) -> None:
    check_switches(run(under(OwnAlgorithm("mine.py", SWITCHES)), tmp_path))


def test_subflows_under_an_agent_give_the_same_bytes_for_the_same_seed(tmp_path: Path) -> None:
    spec = under("ccp:reno", 4, agent=AgentSpec(jitter_us=500.0))
    first, again = (run(spec, tmp_path / name) for name in ("a", "b"))
    assert {row.cc for row in first.flows} == {"ccp:reno"}
    assert {row.subflows_joined for row in first.flows} == {4}
    assert first.metrics["agent_reports"] > 0
    assert not agents_reasons(first)
    assert rows(first) == rows(again)
    assert first.metrics == again.metrics


def test_a_command_takes_effect_after_the_delay_that_the_run_asks_for(tmp_path: Path) -> None:
    """The kernel carries it out at its time, which no reading of a clock and no other event delays."""
    algorithm = acting("doubles.py", DOUBLING.replace("WINDOW", str(WINDOW_PKTS)))
    late_us = {}
    for delay_us in (0.0, DELAY_US):
        spec = under(algorithm, agent=AgentSpec(delay_us=delay_us))
        result = run(spec, tmp_path / f"{delay_us:g}")
        assert not agents_reasons(result)
        late_us[delay_us] = result.metrics["agent_most_late_us"]
        sockets = result.samples["sockets"].columns
        assert sockets["cwnd_pkts"][-1] == 2 * WINDOW_PKTS
    assert late_us[DELAY_US] < 1.0, "the timer is exact"
    assert late_us[0.0] < 20.0, "the agent needs a few readings of the clock"


def test_an_algorithm_that_raises_in_a_guest_makes_the_point_suspect(tmp_path: Path) -> None:
    check_raised(run(under(raising()), tmp_path))


@pytest.mark.parametrize("sent", ["SIGKILL", "SIGSTOP"])
def test_without_an_agent_reno_goes_on_in_a_guest(sent: str, tmp_path: Path) -> None:
    check_reno_went_on(run(under(killed(sent)), tmp_path))


CROWDED = dataclasses.replace(test_controllers_live.CROWDED, engine="linux")
TRANSFERS = dataclasses.replace(
    CROWDED,
    workload=WorkloadSpec("map_reduce", {"jobs": 0, "maps": 4, "reduces": 4, "kb": 1500}),
    warmup_s=0.5,
    seconds=14.0,
)
"""32 transfers of 1.5 MB; the four of a receiver take 5.1 s on an idle link. The last bytes are written long
before they arrive."""


def test_the_kernel_of_a_guest_has_the_subflows_that_the_controller_opened(tmp_path: Path) -> None:
    result = run(CROWDED, tmp_path)
    joined = [flow.subflows_joined for flow in result.flows]
    assert min(joined) >= 1 and max(joined) in {2, 3}
    opened = result.metrics["subflows_opened"]
    assert 0 < sum(joined) - len(joined) <= opened
    assert result.metrics["controller_messages"] > opened


def test_transfers_get_subflows_after_their_last_write(tmp_path: Path) -> None:
    """A sender that shut down its side could open none: Linux answers ENOTCONN."""
    result = run(TRANSFERS, tmp_path)
    assert all(math.isfinite(flow.completed_s) for flow in result.flows)
    assert result.metrics["subflows_opened"] > 0
    assert not result.provenance["path_manager_errors"]


EXACT_S = 1e-4
"""In virtual time the kernel takes no time from the tap to its TCP, but the tap's reader reads the clock."""


def ranked(
    folder: Path, discipline: str, queue_pkts: int, flows: tuple[int, int, int, float]
) -> dict[str, Any]:
    folder.mkdir()
    found: list[Any] = []
    request = {"discipline": discipline, "queue_pkts": queue_pkts, "flows": list(flows)}
    target = "tests.support.scenarios.ranks:completions"
    guest.run(asked(folder, "", request, target=target, memory_mb=1024), None, found.append)
    (report,) = found
    assert isinstance(report, dict)
    return report


def test_every_segment_in_a_guest_has_what_remains_of_its_flow_and_its_sender_is_mintcp(
    tmp_path: Path,
) -> None:
    report = ranked(tmp_path / "a", "pfabric", *LOSSY)
    check_frames(report, EXACT_S)
    check_sender(report)


def test_short_flows_overtake_a_long_one_in_a_guest(tmp_path: Path) -> None:
    flows = (LONG, SHORT, SHORTS, 0.12)
    found, fifo = (
        ranked(tmp_path / discipline, discipline, 24, flows)["completed_s"]
        for discipline in ("pfabric", "fifo")
    )
    check_completions(found, fifo)


DRAWN = settings(100, 1)
KEPT = (4, 5, 13, 20, 21, 23, 30, 37, 44, 46)
"""Their seeds: FatTree, leaf-spine and star; short and long queues, loss, delay, marks, 1 to 8 subflows."""


@pytest.mark.parametrize("seed", KEPT)
def test_shares_are_those_of_linux_hosts(seed: int) -> None:
    found = compared(DRAWN[seed - 1])
    assert found.agrees, found
    assert found.rank is None or found.rank > 0.3


def test_own_programs_beside_flows_give_the_same_bytes(tmp_path: Path) -> None:
    spec = test_own_programs.spec_of(
        test_own_programs.SERVERS, test_own_programs.CLIENTS, background="stride:1", subflows=2,
        engine="linux", warmup_s=2.0,
    )  # fmt: skip
    LinuxEngine().check(spec)
    first, second = (_ran_in(tmp_path / name, spec) for name in ("first", "second"))
    assert first.metrics["client_ms_count"] == 15 and first.metrics["programs_unfinished"] == 0
    assert first.samples["connections"]["protocol"].tolist() == ["mptcp"]
    assert (first.flows, first.ports, first.metrics) == (second.flows, second.ports, second.metrics)
    assert first.samples == second.samples


def test_a_program_in_a_guest_has_its_folder_and_the_runs_network_alone(tmp_path: Path) -> None:
    spec = dataclasses.replace(test_own_programs.confined(), engine="linux")
    found = _ran_in(tmp_path / "point", spec)
    assert test_own_programs.reported(found.metrics) == test_own_programs.ALLOWED


def _ran_in(folder: Path, spec: RunSpec) -> RunResult:
    folder.mkdir()
    return LinuxEngine().run(spec, Silent(), folder)
