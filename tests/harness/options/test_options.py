"""Options as typed: what is accepted, what each refusal says, and what overrides what."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UsageError
from engines.emulation import calibrate
from experiments.cs244_2013 import CS244_ONE_TO_ONE
from experiments.registry import EXPERIMENTS
from fabric.plan import FRAME_BITS
from harness.baseline import baseline_of
from harness.options.fields import (
    BY_NAME,
    OPTIONS,
    STACK_FIELDS,
    changed_texts,
    parse_stack,
    usual_stack,
)
from harness.options.options import SETTABLE, SweepOptions, layer_of, resolve, several
from harness.options.parsers import ints, sweep_workloads
from harness.options.profiles import PROFILES
from harness.options.rates import MAX_S, RateChoice, cut_durations, delay_s, long_enough
from harness.plan import jobs, session
from harness.plan.machines import TO_BE_MEASURED, ThisMachine
from harness.results.store import load
from model.spec import LINUX, LinkEvent, LinkSpec, RunSpec, StackSpec, TopologySpec
from model.words import stack_words
from tests.support.command import refabric
from tests.support.fake_engine import FakeEngine
from tests.support.options import options_typed
from tests.support.svg_text import words_of

(FIGURE,) = CS244_ONE_TO_ONE.figures
pytestmark = pytest.mark.usefixtures("in_this_process")
ROOT = Path(__file__).resolve().parents[3]


def options_of(**typed: Any) -> SweepOptions:
    return resolve(options_typed(**typed), FIGURE.defaults)


def specs_of(**typed: Any) -> list[RunSpec]:
    return FIGURE.points(options_of(**typed), lambda _topology: 5.0)


@pytest.mark.parametrize(
    ("text", "values"),
    [("1,2,8", (1, 2, 8)), ("1-8", tuple(range(1, 9))), ("8,1-3,2", (8, 1, 2, 3)), (" 4 , 6 ", (4, 6))],
)
def test_lists_and_ranges(text: str, values: tuple[int, ...]) -> None:
    assert ints("--subflows", text) == values


@given(st.text(max_size=12))
def test_any_text_is_numbers_or_one_refusal(text: str) -> None:
    try:
        values = ints("--k", text)
    except UsageError:
        return
    assert values
    assert all(value >= 0 for value in values)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"k": "5"}, "even k from 4"), ({"k": "2"}, "even k from 4"), ({"k": "0"}, "even k from 4"),
        ({"k": "82"}, "even k from 4 to 80"),
        ({"k": "4-8"}, "list the sizes"), ({"k": "four"}, "not a number"),
        ({"workload": "reference"}, "choose from"), ({"workload": "all_to_none"}, "choose from"),
        ({"subflows": "0"}, "outside 1..32"), ({"subflows": "33"}, "outside 1..32"),
        ({"subflows": "8-1"}, "empty or too long"), ({"subflows": "1-99999"}, "empty or too long"),
        ({"subflows": "1,,2"}, "not a number"), ({"subflows": "1-40"}, "outside 1..32"),
        ({"loss": -0.1}, "at least 0"), ({"loss": 51.0}, "at most 50"), ({"ecn": -1}, "at least 0"),
        ({"write": 1 << 25}, "at most"), ({"sysctl": ("kernel.panic=1",)}, "a name of net."),
        ({"sysctl": ("net.ipv4.tcp_sack",)}, "NAME=VALUE"), ({"sysctl": ("net.ipv4/x=1",)}, "NAME=VALUE"),
        ({"sysctl": ("net..ipv4=1",)}, "NAME=VALUE"), ({"cc": "vegas"}, "choose from: reno"),
        ({"cc": ",lia"}, "a name is missing"), ({"cc": ""}, "a name is missing"),
        ({"ecn": 100}, "drops before it marks"),
        ({"queue_bytes": 100}, "at least 1514"), ({"queue": 10, "queue_bytes": 15000}, "choose one"),
        ({"random_drop": -1}, "at least 0"), ({"random_drop": 101}, "the queue holds 100 packets"),
        ({"random_drop": 9, "queue": 0}, "the queue has no limit"),
        ({"random_drop": 9, "queue_bytes": 8 * 1514}, "holds 8 packets"),
        ({"discipline": "fair"}, "choose from: fifo, "),
        ({"discipline": "codel:goal_us=5"}, "'goal_us' is no setting; codel has target_us=5000"),
        ({"discipline": "codel:target_us"}, "give a number of us"),
        ({"discipline": "codel:target_us=0"}, "must be at least 1 us"),
        ({"discipline": "codel:ecn=0.5"}, "must be a whole number"),
        ({"discipline": "codel:ecn=1,ecn=0"}, "'ecn' is given twice"),
        ({"discipline": "fifo:target_us=5"}, "fifo has none"),
        ({"discipline": "red:min_pkts=20"}, "max_pkts above its min_pkts"),
        ({"event": ("c0-p0a0:0",)}, "SECONDS:NODE-NODE"), ({"event": ("10:c0-a-b:0",)}, "SECONDS:NODE-NODE"),
        ({"event": ("10:c0:0",)}, "SECONDS:NODE-NODE"), ({"event": ("1:c0-p0a0:x",)}, "for half the rate"),
        ({"sysctl": ("net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack=1")}, "give it once"),
        ({"rate": "-5"}, "above 0"), ({"rate": "nan"}, "above 0"), ({"rate": "inf"}, "above 0"),
        ({"rate": "0"}, "above 0"), ({"rate": "fast"}, "--rate auto"),
        ({"rate": "1e-7"}, "at least 0.01 Mb/s"), ({"rate": "1e13"}, "at most 400000 Mb/s"),
        ({"queue": 2**32}, "at most 1000000 packet"), ({"delay": 1e9}, "at most 10000000 us"),
        ({"queue": -1}, "at least 0 packets (0: unbounded)"),
        ({"delay": -1.0}, "at least 0 us"), ({"seconds": 0.0}, "at least 1e-06 s"),
        ({"seconds": float("nan")}, "at least 1e-06 s"),
        ({"warmup": -0.5}, "at least 0 s"), ({"seed": -1}, "at least 0"), ({"seeds": 0}, "1..1000"),
        ({"engine": "ns3"}, "choose from: mininet"), ({"dataplane": "copper"}, "choose from: fabric"),
        ({"traffic": "netperf"}, "choose from: iperf3"), ({"routing": "rip"}, "choose from: hashed"),
        ({"profile": "huge"}, "smoke, quick, paper"),
    ],
)  # fmt: skip
def test_refusals_name_the_option_and_what_to_do(typed: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        options_of(**typed)
    name = next(iter(typed)).replace("_", "-")
    assert str(caught.value).startswith(f"--{name} ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_override_the_profile_and_the_profile_the_experiment() -> None:
    smoke = options_of(profile="smoke")
    assert (smoke.ks, smoke.subflows, smoke.base.seconds, smoke.rate_mbps) == ((4,), (1, 2, 8), 25.0, None)
    assert smoke.profile.highest_mbps == 10.0
    simulated = options_of(profile="smoke", engine="simulator")
    assert (simulated.base.warmup_s, simulated.base.seconds, simulated.rate_mbps) == (3.0, 8.0, 10.0)
    typed = {"k": "6", "subflows": "4", "seconds": 2.5, "rate": "auto", "warmup": 0.0, "seeds": 2, "seed": 7}
    own = options_of(profile="smoke", **typed)
    assert (own.ks, own.subflows, own.seeds) == ((6,), (4,), (7, 8))
    assert (own.base.seconds, own.rate_mbps, own.base.warmup_s) == (2.5, None, 0.0)
    quick = options_of()
    assert (quick.ks, quick.subflows, quick.seeds) == ((8,), tuple(range(1, 9)), (1,))
    assert len(options_of(profile="paper").seeds) == 6


def test_smoke_takes_three_and_a_half_minutes() -> None:
    profile = PROFILES["smoke"]
    points = 1 + len(profile.settings["transport.subflows"])
    traffic_s = points * (profile.settings["seconds"] + profile.settings["warmup_s"])
    trial_s = calibrate.WARMUP_S + calibrate.SECONDS
    starts_s = 2.2 * (points + 1)
    assert traffic_s + trial_s + calibrate.NOISE_S + starts_s < 205, "charts take the rest"


def test_points_share_seeds_queues_and_a_baseline() -> None:
    specs = specs_of(k="4,6", subflows="1,2", seeds=2, queue=50, qmon=True)
    assert len(specs) == len({spec.content_hash() for spec in specs}) == 8
    queues = {(s.link.queue_pkts, s.link.nic_queue_pkts, s.sampling.queues_ms) for s in specs}
    assert queues == {(50, 50, 100)}
    assert len({baseline_of(spec).content_hash() for spec in specs}) == 2


def test_link_properties_and_sysctls_reach_the_spec() -> None:
    spec = specs_of(loss=0.5, ecn=20, sysctl=("net.ipv4.tcp_rmem=4096  16384 65536",), write=8192)[0]
    assert (spec.link.loss, spec.link.ecn_pkts, spec.transport.write_bytes) == (0.005, 20, 8192)
    assert spec.transport.sysctls == {"net.ipv4.tcp_rmem": "4096 16384 65536"}


def test_queues_and_events_reach_the_spec_but_no_event_its_baseline() -> None:
    assert specs_of(discipline="priority")[0].link.discipline == "priority"
    texts = ("codel:ecn=0,interval_us=2e4,target_us=1000.0", "codel", "codel:interval_us=100000")
    forms = [specs_of(discipline=text)[0].link.discipline for text in texts]
    assert forms == ["codel:target_us=1000,interval_us=20000", "codel", "codel"]
    assert specs_of()[0].link.discipline == "fifo"
    spec = specs_of(queue_bytes=30_280, random_drop=5, event=("10:p0a0-c0", "12.5:p0a0-c0:0.25"))[0]
    assert (spec.link.queue_bytes, spec.link.random_pkts) == (30_280, 5)
    assert spec.events == (LinkEvent(10.0, "p0a0", "c0", 0.0), LinkEvent(12.5, "p0a0", "c0", 0.25))
    assert baseline_of(spec).events == ()
    assert RunSpec.from_json(spec.to_json()) == spec


def test_mptcp_is_coupled_where_the_machine_can_and_no_option_says_otherwise() -> None:
    typed = [options_typed(subflows="1,8"), options_typed(subflows="1,8", cc="reno")]
    (unsaid, given), fallback = [resolve(g, FIGURE.defaults) for g in typed], "reno"
    assert {s.transport.cc for s in FIGURE.points(unsaid, lambda _t: 5.0)} == {"lia"}
    assert {s.transport.cc for s in FIGURE.points(given, lambda _t: 5.0)} == {"reno"}
    unable = resolve(typed[0], FIGURE.defaults, fallback)
    assert {s.transport.cc for s in FIGURE.points(unable, lambda _t: 5.0)} == {fallback}


def test_numbers_hash_alike_however_they_were_typed() -> None:
    assert specs_of(seconds=40)[0].content_hash() == specs_of(seconds=40.0)[0].content_hash()
    assert specs_of(delay=0)[0].content_hash() == specs_of()[0].content_hash()


class TestScript:
    """run_mptcp.sh refuses before it installs anything."""

    @staticmethod
    def script(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
        argv = [str(folder / "run_mptcp.sh"), *arguments]
        return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)

    @pytest.mark.parametrize(
        "arguments",
        [("5",), ("2",), ("0",), ("-4",), ("4.5",), ("4x",), ("1000",), ("nonsense",), ("4", "all_to_none"),
         ("4", ":4"), ("4", "reference"), ("4", "one_to_one", "extra"), ("",),
         ("4", "one_to_one", "qmon", "extra")],
    )  # fmt: skip
    def test_bad_k_or_workload(self, arguments: tuple[str, ...]) -> None:
        done = self.script(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1

    def test_help(self) -> None:
        for argument in ("--help", "-h"):
            done = self.script(argument)
            assert (done.returncode, done.stderr) == (0, "")
            listed = done.stdout.partition("Workloads:\n")[2].partition("\n\n")[0].split()
            assert listed == list(sweep_workloads())

    @pytest.mark.parametrize(
        ("arguments", "passed"),
        [
            ((), "--k 4 --workload one_to_one"),
            (("8",), "--k 8 --workload one_to_one"),
            (("all",), "--k 4,6,8 --workload one_to_one"),
            (("6", "all"), "--k 6 --workload all"),
            (("qmon", "--seconds", "5"), "--k 4 --workload one_to_one --qmon --seconds 5"),
            (("8", "stride:4", "qmon"), "--k 8 --workload stride:4 --qmon"),
            (("010", "--results", "a b"), "--k 10 --workload one_to_one --results a b"),
        ],
    )
    def test_passes_its_arguments_on_from_a_path_with_spaces(
        self, tmp_path: Path, arguments: tuple[str, ...], passed: str
    ) -> None:
        assert self.passed(tmp_path, *arguments) == f"run cs244-one-to-one {passed}"

    @pytest.mark.parametrize("more", [(), ("qmon",), ("--rate", "5")])
    def test_all_all_is_every_figure_of_the_post(self, tmp_path: Path, more: tuple[str, ...]) -> None:
        options = " ".join(more).replace("qmon", "--qmon")
        assert self.passed(tmp_path, "all", "all", *more) == f"run cs244 {options}".strip()

    @staticmethod
    def passed(tmp_path: Path, *arguments: str) -> str:
        """Return the arguments that run_mptcp.sh passes to `refabric` as root, in a checkout of fakes."""
        checkout = tmp_path / "my check out"
        for name in ("setup", ".venv/bin"):
            (checkout / name).mkdir(parents=True)
        (checkout / "run_mptcp.sh").write_bytes((ROOT / "run_mptcp.sh").read_bytes())
        (checkout / "setup" / "install.sh").write_text('#!/bin/sh\necho "install $*"\n')
        (checkout / ".venv" / "bin" / "refabric").write_text('#!/bin/sh\necho "$*"\n')
        (checkout / "id").write_text("#!/bin/sh\necho 0\n")
        for name in ("run_mptcp.sh", "setup/install.sh", ".venv/bin/refabric", "id"):
            (checkout / name).chmod(0o755)
        done = subprocess.run(
            ["bash", str(checkout / "run_mptcp.sh"), *arguments],
            capture_output=True, text=True, timeout=30, check=True, cwd=tmp_path,
            env={"PATH": f"{checkout}:/usr/bin:/bin"},
        )  # fmt: skip
        assert done.stderr == "install --quiet\n"
        return done.stdout.strip()

    def test_without_root_it_says_how(self, tmp_path: Path) -> None:
        (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
        (tmp_path / "id").chmod(0o755)
        done = subprocess.run(
            [str(ROOT / "run_mptcp.sh"), "8"], capture_output=True, text=True, timeout=30, check=False,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        )  # fmt: skip
        assert done.returncode == 3
        assert done.stderr.strip().endswith("run_mptcp.sh 8")
        assert "sudo" in done.stderr


def test_each_path_of_what_a_user_gives_is_that_of_one_option() -> None:
    paths = [option.path or option.name for option in OPTIONS]
    assert len(set(paths)) == len(paths) and "qmon" not in paths
    assert {path for path in paths if "." in path} <= set(SETTABLE) | {"transport.subflows", "transport.cc"}


def test_what_a_user_gives_has_the_paths_of_the_spec_and_no_usual_values() -> None:
    given = options_typed(
        k="4", queue="20,50", stack=("min_rto_ms=10,200", "sack=off"), seed=1, profile="quick"
    )
    stack = {"stack.min_rto_ms": (10.0, 200.0), "stack.sack": False}
    assert given == {"k": (4,), "link.queue_pkts": (20, 50), **stack}
    assert [*several(given)] == ["link.queue_pkts", "stack.min_rto_ms"]


def test_fields_of_the_stack_that_a_figure_and_a_user_choose_are_layers() -> None:
    stack = {"min_rto_ms": 10.0, "sack": False}
    figure = {**FIGURE.defaults, "stack": stack, "stack.initial_window": 3}
    layer = layer_of(figure)
    assert layer["stack.min_rto_ms"] == 10.0 and "stack" not in layer
    options = resolve(options_typed(engine="simulator", stack=("min_rto_ms=20",)), figure)
    assert options.base.stack == StackSpec(min_rto_ms=20.0, sack=False, initial_window=3)


TEXTS: dict[str, Any] = {
    "transport": "ndp:window_pkts=23",
    "dataplane": "ovs", "controller": "pox", "mode": "proactive", "datapath": "user", "routing": "scatter",
    "queue": "7", "delay": "0.1", "host_delay": "2.5", "clock_tolerance": "0",
    "queue_bytes": "3028", "traffic": "native",
    "loss": "0.7", "ecn": "20", "link_trace": "lte:3",
    "random_drop": "5", "discipline": "priority", "host_queue": "qdisc",
    "event": ("10:p0a0-c0:0", "12.5:p0a0-c0:0.25"), "write": "8192",
    "reroute": "50",
    "sysctl": ("net.ipv4.tcp_rmem=4096 16384 65536", "net.ipv4.tcp_sack=0"), "scheduler": "first_fit:50",
    "stalls": "all:100:2-6", "clock": "strict", "stack": ("min_rto_ms=10", "sack=off"),
    "agent_delay": "250", "agent_jitter": "12.5", "report_interval": "5000", "parts": "8",
}  # fmt: skip


@pytest.mark.parametrize("name", BY_NAME)
def test_a_command_repeats_the_value_of_every_field(name: str) -> None:
    option, text = BY_NAME[name], TEXTS[name]
    value = option.parse(option.flag, text)
    if name == "stack":
        value = StackSpec(**value)
    spec = RunSpec(LinkSpec(5.0)).changed({option.path: value})
    assert option.text(value) == text
    texts = (text,) if isinstance(text, str) else text
    if option.repeated:
        assert {*texts} < {*option.repeated(value)}, "and what Linux's stack would change"
        texts = option.repeated(value)
    assert option.argv(spec) == [part for one in texts for part in (option.flag, one)]


BOTH = frozenset({"warmup_s", "seconds", "events"})
TREE = TopologySpec("fat_tree", {"k": 4})


def point(rate_mbps: float, **link: Any) -> RunSpec:
    return RunSpec(LinkSpec(rate_mbps, **link), TREE, warmup_s=20.0, seconds=40.0)


def durations(spec: RunSpec, growing: frozenset[str] = BOTH) -> tuple[float, float]:
    fitted = long_enough(spec, growing)
    assert dataclasses.replace(fitted, warmup_s=spec.warmup_s, seconds=spec.seconds) == spec
    return fitted.warmup_s, fitted.seconds


@pytest.mark.parametrize("rate_mbps", [10.0, 50.0, 1000.0])
def test_nothing_changes_from_10_mbps_on(rate_mbps: float) -> None:
    assert durations(point(rate_mbps)) == (20.0, 40.0)


def test_slower_links_are_watched_for_as_many_packets() -> None:
    assert durations(point(5.0)) == (40.0, 60.0)
    assert durations(point(2.0)) == (100.0, 150.0)
    assert durations(point(1.0)) == (200.0, 300.0)
    assert durations(point(1.0), frozenset()) == (20.0, 40.0)
    assert durations(point(1.0), frozenset({"warmup_s"})) == (200.0, 40.0)
    assert durations(point(1.0), frozenset({"seconds"})) == (20.0, 300.0)


def test_long_queues_and_paths_are_watched_for_as_many_round_trips() -> None:
    full_s = 1000 * FRAME_BITS / 1e7
    warmup_s, seconds = durations(point(10.0, queue_pkts=1000))
    assert warmup_s / full_s == pytest.approx(160, rel=0.01)
    assert seconds == pytest.approx(1.5 * warmup_s, abs=1)
    assert durations(point(10.0, queue_bytes=1_514_000)) == (warmup_s, seconds)
    assert delay_s(point(10.0, queue_pkts=0, delay_us=50_000.0)) == pytest.approx(6 * 2 * 0.05)
    assert durations(point(10.0, queue_pkts=0, delay_us=50_000.0)) == (96.0, 144.0)
    assert durations(point(10.0, queue_pkts=0)) == (20.0, 40.0), "a queue without bound has no full length"


def test_five_minutes_are_the_most_and_a_cut_is_reported() -> None:
    slow = point(0.8)
    assert durations(slow) == (250.0, MAX_S)
    (line,) = cut_durations([slow, slow, point(10.0)], BOTH)
    assert "375 s, cut at 300 s" in line and "--rate" in line and "--seconds" in line
    assert cut_durations([slow], {"warmup_s"}) == [], "the window was given by hand"
    (both,) = cut_durations([point(0.4)], BOTH)
    assert "500 s of warm-up" in both and "750 s, cut at 300 s" in both and "--warmup and --seconds" in both
    assert cut_durations([slow], ()) == []


@given(st.floats(0.01, 1000.0), st.integers(0, 2000), st.sampled_from([0.0, 10.0, 1000.0]))
def test_no_duration_becomes_shorter_or_longer_than_the_most(rate: float, queue: int, delay: float) -> None:
    warmup_s, seconds = durations(point(rate, queue_pkts=queue, delay_us=delay))
    assert 20.0 <= warmup_s <= MAX_S
    assert 40.0 <= seconds <= MAX_S


def test_the_farthest_host_ends_the_longest_path() -> None:
    star = dataclasses.replace(
        point(10.0, queue_pkts=0, delay_us=1.0), topology=TopologySpec("star", {"n": 9})
    )
    assert delay_s(star) == pytest.approx(2 * 2e-6)
    lanes = TopologySpec("dumbbell", {"n": 2, "lanes": 3})
    assert delay_s(dataclasses.replace(star, topology=lanes)) == pytest.approx(3 * 2e-6)


class TestPlans:
    """What `refabric plan` says and `refabric run` does."""

    def durations(self, name: str = "cs244-one-to-one", **typed: Any) -> set[tuple[float, float]]:
        plan = session.make_plan(EXPERIMENTS[name], options_typed(**typed), FakeEngine(name="mininet"))
        return {(spec.warmup_s, spec.seconds) for part in plan.figures for spec in part.specs}

    def test_the_rate_decides_unless_an_option_does(self) -> None:
        assert self.durations(rate="10") == {(20.0, 40.0)}
        assert self.durations(rate="2") == {(100.0, 150.0)}
        assert self.durations(rate="2", profile="paper") == {(100.0, 150.0)}
        assert self.durations(rate="2", seconds=3.0) == {(100.0, 3.0)}
        assert self.durations(rate="2", seconds=3.0, warmup=1.0) == {(1.0, 3.0)}
        assert self.durations(rate="2", profile="smoke") == {(20.0, 25.0)}, "smoke takes 3.5 minutes"

    def test_what_a_figure_pins_it_keeps(self) -> None:
        assert self.durations("cs244-fig9") == {(0.0, 40.0)}
        assert self.durations("cs244-fig11") == {(200.0, 300.0)}, "1 Mb/s is what it shows, settled"
        assert self.durations("cs244-fig11", rate="2") == {(100.0, 150.0)}

    def test_virtual_time_keeps_its_durations(self) -> None:
        assert self.durations(engine="simulator", rate="1") == {(20.0, 40.0)}
        assert self.durations(engine="simulator", profile="smoke") == {(3.0, 8.0)}

    def test_a_rate_not_yet_known_is_taken_for_a_usual_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ThisMachine, "known_rate", lambda *_: RateChoice(None, TO_BE_MEASURED))
        assert self.durations(k="4") == {(20.0, 40.0)}
        given = options_typed(queue=2000)
        plan = session.make_plan(EXPERIMENTS["cs244-one-to-one"], given, FakeEngine(name="mininet"))
        assert plan.left_out() == []


@pytest.mark.parametrize(
    ("engines", "grow"),
    [("mininet", True), ("mininet,simulator", True), ("simulator", False), ("linux,simulator", False)],
)
def test_durations_grow_where_a_point_runs_in_real_time(engines: str, grow: bool) -> None:
    figure = EXPERIMENTS["cs244-one-to-one"].figures[0]
    options = resolve(options_typed(engine=engines, rate="1"), figure.defaults)
    assert bool(options.growing) == grow


SMALL = ("--engine", "simulator", "--k", "4", "--subflows", "1,2", "--rate", "10", "--seconds", "0.5",
         "--warmup", "0.2")  # fmt: skip


def simulated_options(**typed: Any) -> SweepOptions:
    return resolve(options_typed(engine=typed.pop("engine", "simulator"), **typed), FIGURE.defaults)


def test_stacks_are_typed_by_name_and_read_back_the_same() -> None:
    asked = ("acks=at_once", "sack=off", "min_rto_ms=10", "initial_window=1", "receive_buffer=64")
    stack = simulated_options(stack=asked).base.stack
    wanted = StackSpec(acks="at_once", sack=False, min_rto_ms=10.0, initial_window=1, receive_buffer=64)
    assert stack == wanted
    assert simulated_options(stack=tuple(stack_words(stack).split())).base.stack == stack
    assert set(STACK_FIELDS) == {field.name for field in dataclasses.fields(StackSpec)}
    assert simulated_options(stack=tuple(usual_stack().split(", "))).base.stack == StackSpec()


@pytest.mark.parametrize(
    "stack", [LINUX, dataclasses.replace(LINUX, ack_gaps=False), StackSpec(acks="at_once", min_rto_ms=10.0)]
)
@pytest.mark.parametrize("figures_own", [StackSpec(), LINUX])
def test_the_options_of_a_stack_make_it_of_a_figures_own(stack: StackSpec, figures_own: StackSpec) -> None:
    """A report's command repeats exactly its points."""
    given = parse_stack("--stack", changed_texts(stack))
    assert dataclasses.replace(figures_own, **given) == stack  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "chosen"), [("ack_gaps=off", {"ack_gaps": False}), ("recovery=rfc", {"recovery": "rfc"})]
)
def test_one_parameter_of_a_figures_own_stack_is_changed_alone(typed: str, chosen: dict[str, Any]) -> None:
    """Also to the value that is the usual one elsewhere."""
    (figure,) = EXPERIMENTS["cross-check"].figures
    options = resolve(options_typed(engine="simulator", stack=(typed,)), figure.defaults)
    stacks = {spec.stack for spec in figure.points(options, lambda _: 10.0)}
    assert stacks == {dataclasses.replace(LINUX, **chosen)}


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"stack": ("acks",)}, "write NAME=VALUE; names are: payload_bytes"),
        ({"stack": ("colour=red",)}, "names are: payload_bytes"),
        ({"stack": ("scheduler=lottery",)}, "unknown; choose from: min_rtt"),
        ({"stack": ("sack=maybe",)}, "write sack=on or sack=off"),
        ({"stack": ("initial_window=2.5",)}, "a whole number of segments"),
        ({"stack": ("initial_window=0",)}, "must be at least 1 segments"),
        ({"stack": ("min_rto_ms=-1",)}, "must be at least 0 ms"),
        ({"stack": ("min_rto_ms=nan",)}, "must be at least 0 ms"),
        ({"stack": ("payload_bytes=70000",)}, "must be at most 9000 bytes"),
        ({"stack": ("sack=on", "sack=off")}, "sack is given already"),
        ({"stack": ("sack=off",), "engine": "mininet"}, "the stacks of mininet's hosts are their own"),
        ({"sysctl": ("net.ipv4.tcp_sack=0",)}, "--sysctl net.ipv4.tcp_sack=0: simulated hosts have no"),
        ({"write": 4096}, "--write 4096: simulated hosts have no kernel"),
        ({"traffic": "native"}, "--traffic native: simulated hosts have no kernel"),
        ({"dataplane": "ovs"}, "--dataplane ovs: simulated hosts have no kernel"),
    ],
)
def test_each_refusal_says_what_to_do(typed: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        simulated_options(**typed)


def test_durations_suit_virtual_time() -> None:
    """A tenth at the paper's rate and above, the usual length where queues delay as long as timers."""
    for typed, warmup_s, seconds in (
        ({}, 2.0, 4.0), ({"rate": "1000"}, 2.0, 4.0), ({"rate": "20"}, 10.0, 20.0), ({"rate": "1"}, 20, 40),
        ({"seconds": 7.0, "warmup": 0.0}, 0.0, 7.0), ({"engine": "mininet"}, 20.0, 40.0),
    ):  # fmt: skip
        base = simulated_options(**typed).base
        assert (base.warmup_s, base.seconds) == (warmup_s, seconds), typed


def test_what_figures_pin_for_real_hosts_changes_no_simulated_name() -> None:
    (figure,) = EXPERIMENTS["coupled-fairness"].figures[:1]
    assert figure.defaults["traffic"] == "native"
    simulated = resolve(options_typed(engine="simulator"), figure.defaults)
    assert simulated.base.traffic == simulated_options().base.traffic
    assert simulated.base.transport.sysctls == {}


@pytest.mark.parametrize("engine", ["mininet", "linux"])
def test_networks_of_real_hosts_are_not_divided(engine: str, tmp_path: Path) -> None:
    options = ("--engine", engine, "--k", "4", "--rate", "10", "--subflows", "1", "--results", str(tmp_path))
    done = refabric("plan", "cs244-one-to-one", *options, "--parts", "2")
    assert done.exit_code == 2
    assert f"--parts 2: the hosts of {engine} are not simulated" in done.stderr
    assert refabric("plan", "cs244-one-to-one", *options, "--parts", "1").exit_code == 0


def test_only_real_time_saturates_a_machine(tmp_path: Path) -> None:
    for engine in ("simulator", "linux"):
        done = refabric("plan", "cs244-fig5", "--engine", engine, "--results", str(tmp_path))
        assert done.exit_code == 2
        assert f"cs244-fig5: {jobs.NO_CPU_TO_SATURATE}" in done.stderr
    whole = refabric("plan", "cs244", "--engine", "simulator", "--results", str(tmp_path))
    assert whole.exit_code == 0
    assert "cs244-fig5, cs244-fig6, cs244-fig7, cs244-fig8: " in whole.stdout


def test_a_figure_of_simulated_hosts_says_so_where_real_ones_are_asked_for(tmp_path: Path) -> None:
    done = refabric("plan", "pfabric-overall", "--engine", "linux", "--results", str(tmp_path))
    assert done.exit_code == 2
    assert f"pfabric-overall: {jobs.NO_LINUX_HOSTS}" in done.stderr


@pytest.mark.usefixtures("drawn")
def test_a_simulated_sweep_from_run_to_report(tmp_path: Path) -> None:
    """It needs no root, has no CPU columns, and its outputs say that it is simulated."""
    done = refabric("run", "cs244-one-to-one", *SMALL, "--stack", "min_rto_ms=10", "--results", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "simulated" in done.stdout
    points = load(tmp_path / "cs244-one-to-one")
    assert {point.spec.stack.min_rto_ms for point in points} == {10.0}
    for point in points:
        assert point.metrics["simulation_cpu_s"] > 0
        assert point.elapsed_s > 0
        assert {"revision", "compiler", "cpu", "rate_choice"} <= set(point.provenance)
    summary = (tmp_path / "cs244-one-to-one" / "summary.csv").read_text().splitlines()
    head, first, *_ = (line.split(",") for line in summary)
    assert first[head.index("cpu_busy_pct")] == first[head.index("late_p99_us")] == ""
    for command in ("plot", "report", "status"):
        again = refabric(command, "cs244-one-to-one", "--results", str(tmp_path))
        assert again.exit_code == 0, again.output
    (chart,) = (tmp_path / "cs244-one-to-one" / "charts").glob("throughput-*.svg")
    assert "simulated" in words_of(chart)
    page = (tmp_path / "cs244-one-to-one" / "report.html").read_text()
    assert "--stack min_rto_ms=10" in page.replace("</span> <span>", " ")
    assert "sudo .venv/bin/refabric run cs244-one-to-one" not in page
    (tmp_path / "cs244-one-to-one" / points[0].name / "origin.json").unlink()
    resumed = refabric("status", "cs244-one-to-one", *SMALL, "--results", str(tmp_path))
    assert "origin.json" in resumed.stderr
