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
from harness.options.fields import BY_NAME, GRID_OPTIONS, changed
from harness.options.options import SweepOptions, UserOptions, resolve
from harness.options.parsers import ints
from harness.options.profiles import PROFILES
from harness.points.baseline import baseline_of
from model.spec import LinkEvent, LinkSpec, RunSpec, StackSpec

(FIGURE,) = CS244_ONE_TO_ONE.figures
ROOT = Path(__file__).resolve().parents[3]


def options_of(**typed: Any) -> SweepOptions:
    return resolve(UserOptions.of(**typed), FIGURE.defaults)


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
        ({"k": "4-8"}, "list the sizes"), ({"k": "four"}, "not a number"),
        ({"k": "82"}, "even k from 4 to 80"),
        ({"workload": "all_to_none"}, "choose from: one_to_one"), ({"workload": "reference"}, "choose from"),
        ({"subflows": "0"}, "outside 1..32"), ({"subflows": "33"}, "outside 1..32"),
        ({"subflows": "1-40"}, "outside 1..32"), ({"subflows": "8-1"}, "empty or too long"),
        ({"subflows": "1-99999"}, "empty or too long"), ({"subflows": "1,,2"}, "not a number"),
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
        ({"discipline": "fair"}, "choose from: fifo, priority"),
        ({"event": ("c0-p0a0:0",)}, "SECONDS:NODE-NODE"), ({"event": ("10:c0:0",)}, "SECONDS:NODE-NODE"),
        ({"event": ("10:c0-a-b:0",)}, "SECONDS:NODE-NODE"),
        ({"event": ("1:c0-p0a0:x",)}, "for half the rate"),
        ({"sysctl": ("net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack=1")}, "give it once"),
        ({"rate": "0"}, "above 0"), ({"rate": "-5"}, "above 0"), ({"rate": "nan"}, "above 0"),
        ({"rate": "inf"}, "above 0"), ({"rate": "fast"}, "--rate auto"),
        ({"rate": "1e-7"}, "at least 0.01 Mb/s"), ({"rate": "1e13"}, "at most 400000 Mb/s"),
        ({"queue": 2**32}, "at most 1000000 packet"), ({"delay": 1e9}, "at most 10000000 us"),
        ({"queue": -1}, "at least 0 packets (0: unbounded)"),
        ({"delay": -1.0}, "at least 0 us"), ({"seconds": 0.0}, "at least 1e-06 s"),
        ({"seconds": float("nan")}, "at least 1e-06 s"),
        ({"warmup": -0.5}, "at least 0 s"), ({"seed": -1}, "at least 0"), ({"seeds": 0}, "1..1000"),
        ({"cc": "vegas"}, "choose from: reno, cubic, bbr"),
        ({"engine": "ns3"}, "choose from: mininet, linux, simulator, flow-level"),
        ({"dataplane": "copper"}, "choose from: fabric"), ({"traffic": "netperf"}, "choose from: iperf3"),
        ({"routing": "rip"}, "choose from: hashed, ecmp"), ({"profile": "huge"}, "smoke, quick, paper"),
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
    assert smoke.highest_mbps == 10.0
    simulated = options_of(profile="smoke", engine="simulator")
    assert (simulated.base.warmup_s, simulated.base.seconds, simulated.rate_mbps) == (3.0, 8.0, 10.0)
    own = options_of(
        profile="smoke", k="6", subflows="4", seconds=2.5, rate="auto", warmup=0.0, seeds=2, seed=7
    )
    assert (own.ks, own.subflows, own.base.seconds, own.rate_mbps, own.base.warmup_s) == (
        (6,),
        (4,),
        2.5,
        None,
        0.0,
    )
    assert own.seeds == (7, 8)
    quick = options_of()
    assert (quick.ks, quick.subflows, quick.seeds) == ((8,), tuple(range(1, 9)), (1,))
    assert len(options_of(profile="paper").seeds) == 6


def test_smoke_takes_three_and_a_half_minutes() -> None:
    profile = PROFILES["smoke"]
    points = 1 + len(profile.subflows or ())
    traffic_s = points * (profile.seconds + profile.warmup_s)
    trial_s = calibrate.WARMUP_S + calibrate.SECONDS
    starts_s = 2.2 * (points + 1)
    assert traffic_s + trial_s + calibrate.NOISE_S + starts_s < 205, "charts take the rest"


def test_points_share_seeds_queues_and_a_baseline() -> None:
    specs = specs_of(k="4,6", subflows="1,2", seeds=2, queue=50, qmon=True)
    assert len(specs) == len({spec.content_hash() for spec in specs}) == 8
    assert {(s.link.queue_pkts, s.link.nic_queue_pkts, s.sampling.queues_ms) for s in specs} == {
        (50, 50, 100)
    }
    assert len({baseline_of(spec).content_hash() for spec in specs}) == 2


def test_link_properties_and_sysctls_reach_the_spec() -> None:
    spec = specs_of(loss=0.5, ecn=20, sysctl=("net.ipv4.tcp_rmem=4096  16384 65536",), write=8192)[0]
    assert (spec.link.loss, spec.link.ecn_pkts, spec.transport.write_bytes) == (0.005, 20, 8192)
    assert spec.transport.sysctls == {"net.ipv4.tcp_rmem": "4096 16384 65536"}


def test_queues_and_events_reach_the_spec_but_no_event_its_baseline() -> None:
    assert specs_of(discipline="priority")[0].link.discipline == "priority"
    assert specs_of()[0].link.discipline == "fifo"
    spec = specs_of(queue_bytes=30_280, random_drop=5, event=("10:p0a0-c0", "12.5:p0a0-c0:0.25"))[0]
    assert (spec.link.queue_bytes, spec.link.random_pkts) == (30_280, 5)
    assert spec.events == (LinkEvent(10.0, "p0a0", "c0", 0.0), LinkEvent(12.5, "p0a0", "c0", 0.25))
    assert baseline_of(spec).events == ()
    assert RunSpec.from_json(spec.to_json()) == spec


def test_mptcp_is_coupled_where_the_machine_can_and_no_option_says_otherwise() -> None:
    typed = [UserOptions.of(subflows="1,8"), UserOptions.of(subflows="1,8", cc="reno")]
    (unsaid, given), fallback = [resolve(g, FIGURE.defaults) for g in typed], "reno"
    assert {s.transport.cc for s in FIGURE.points(unsaid, lambda _t: 5.0)} == {"lia"}
    assert {s.transport.cc for s in FIGURE.points(given, lambda _t: 5.0)} == {"reno"}
    unable = resolve(typed[0], FIGURE.defaults, fallback)
    assert {s.transport.cc for s in FIGURE.points(unable, lambda _t: 5.0)} == {fallback}


def test_numbers_hash_alike_however_they_were_typed() -> None:
    assert specs_of(seconds=40)[0].content_hash() == specs_of(seconds=40.0)[0].content_hash()
    assert specs_of(delay=0)[0].content_hash() == specs_of()[0].content_hash()


def test_a_spec_survives_its_json() -> None:
    for spec in specs_of(k="4", seeds=2):
        again = RunSpec.from_json(spec.to_json())
        assert again == spec
        assert again.content_hash() == spec.content_hash()


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

    @pytest.mark.parametrize(
        ("arguments", "passed"),
        [
            ((), "--k 4 --workload one_to_one"),
            (("8",), "--k 8 --workload one_to_one"),
            (("all",), "--k 4,6,8 --workload one_to_one"),
            (("6", "all"), "--k 6 --workload all"),
            (("qmon", "--seconds", "5"), "--k 4 --workload one_to_one --qmon --seconds 5"),
            (("one_to_one", "--rate", "5"), "--k 4 --workload one_to_one --rate 5"),
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
        for name in ("setup", ".venv/bin", "workloads"):
            (checkout / name).mkdir(parents=True)
        for name in ("run_mptcp.sh", "workloads/matrices.py"):
            (checkout / name).write_bytes((ROOT / name).read_bytes())
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


def test_every_field_of_given_has_an_option_and_every_option_a_place() -> None:
    fields = {field.name for field in dataclasses.fields(UserOptions)}
    assert fields - {"settings", "qmon"} == {option.name for option in GRID_OPTIONS}
    assert not fields & BY_NAME.keys()


TEXTS: dict[str, Any] = {
    "dataplane": "ovs", "controller": "pox", "mode": "proactive", "datapath": "user", "routing": "scatter",
    "queue": "7", "delay": "0.1", "host_delay": "2.5", "clock_tolerance": "0",
    "queue_bytes": "3028", "traffic": "native",
    "loss": "0.7", "ecn": "20", "link_trace": "lte:3",
    "random_drop": "5", "discipline": "priority", "host_queue": "qdisc",
    "event": ("10:p0a0-c0:0", "12.5:p0a0-c0:0.25"), "write": "8192",
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
    spec = changed(RunSpec(LinkSpec(5.0)), {option.path: value})
    assert option.text(value) == text
    texts = (text,) if isinstance(text, str) else text
    if option.repeated:
        assert {*texts} < {*option.repeated(value)}, "and what Linux's stack would change"
        texts = option.repeated(value)
    assert option.argv(spec) == [part for one in texts for part in (option.flag, one)]
