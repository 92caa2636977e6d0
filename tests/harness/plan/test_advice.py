"""Advice: one line on what fits; otherwise by how much it does not, what to change, and a number's source."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from engines import registry
from engines.emulation import calibrate
from experiments.command import main
from harness.baseline import baseline_of
from harness.cli import run as advising
from harness.options.rates import RateChoice, fixed
from harness.plan.advice import Advice, advise
from harness.plan.jobs import Job
from harness.plan.machines import TO_BE_MEASURED
from model.machine import Capacity, MachineNoise, Utilisation, demand, rate_carried, rounded_down
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from setup import doctor
from tests.support.fake_engine import FakeEngine
from tests.support.stored_points import EXPERIMENT

TWO_CORES = Capacity((Utilisation(497_000, 55.0), Utilisation(1_004_000, 84.0)), 2)
"""Measurements at k=8 of docs/performance.md."""
ROOMY = 100_000.0
QUIET = MachineNoise(1.0, 20.0, 70.0, 300.0, 0.0, ((0, 70.0, 300.0), (1, 60.0, 200.0)))


def spec(k: int = 8, rate_mbps: float = 5.0, subflows: int = 8, matrix: str = "one_to_one") -> RunSpec:
    return RunSpec(
        LinkSpec(rate_mbps),
        TopologySpec("fat_tree", {"k": k}),
        TransportSpec(subflows),
        WorkloadSpec(matrix),
        warmup_s=20.0,
    )


def job(wanted: RunSpec, *, cpu_bound: bool = False, known: bool = True) -> Job:
    choice = fixed(wanted.link.rate_mbps) if known else RateChoice(None, TO_BE_MEASURED)
    return Job(wanted, lambda: 60.0, choice, cpu_bound)


def advice_on(*wanted: RunSpec, capacity: Capacity = TWO_CORES, free_mb: float = ROOMY) -> list[Advice]:
    return advise([job(one) for one in wanted], capacity, free_mb)


def queue(wanted: RunSpec, pkts: int, delay_us: float = 0.0) -> RunSpec:
    return dataclasses.replace(wanted, link=LinkSpec(wanted.link.rate_mbps, delay_us, pkts))


class TestCapacity:
    def test_the_model_is_near_what_was_measured(self) -> None:
        assert demand(spec()).hops_per_s == pytest.approx(497_000, rel=0.1)
        assert demand(spec(rate_mbps=10)).hops_per_s == pytest.approx(1_004_000, rel=0.1)
        assert demand(spec(4, 50.0)).hops_per_s == pytest.approx(460_000, rel=0.3)

    def test_demand_follows_rate_hosts_and_subflows(self) -> None:
        one = demand(spec()).hops_per_s
        assert demand(spec(rate_mbps=10.0)).hops_per_s == pytest.approx(2 * one)
        assert demand(spec(12)).hops_per_s == pytest.approx(one * 432 / 128, rel=0.05)
        by_subflows = [demand(spec(subflows=n)).hops_per_s for n in (1, 2, 4, 8)]
        assert by_subflows == sorted(by_subflows)
        assert demand(spec(subflows=32)).hops_per_s == one

    @pytest.mark.parametrize("matrix", ["one_to_several", "all_to_all", "stride", "hotspot", "random"])
    def test_no_workload_asks_for_more_than_all_links_full(self, matrix: str) -> None:
        wanted = spec(4, matrix=matrix)
        full = 16 * 5e6 / (1514 * 8) * 2 * 6
        assert 0.1 * full < demand(wanted).hops_per_s <= full

    def test_huge_matrices_are_not_built(self) -> None:
        needs = demand(spec(16, matrix="all_to_all"))
        assert (needs.hosts, needs.flows) == (1024, 1024 * 1023)

    def test_a_workload_without_flows_loads_no_links(self) -> None:
        calls = dataclasses.replace(
            spec(matrix="sip"), topology=TopologySpec("star", {"n": 14}), transport=TransportSpec(1)
        )
        needs = demand(calls)
        assert (needs.hosts, needs.flows, needs.hops_per_s) == (14, 0, 0.0)
        assert advice_on(calls) == []

    def test_between_and_beyond_measurements(self) -> None:
        assert TWO_CORES.busy_pct(497_000) == 55.0
        assert 55.0 < TWO_CORES.busy_pct(750_000) < 84.0
        assert TWO_CORES.busy_pct(2_008_000) == 168.0
        assert TWO_CORES.busy_pct(TWO_CORES.hops_per_s) == pytest.approx(70.0)
        alone = Capacity((Utilisation(200_000, 35.0),), 2)
        assert alone.hops_per_s == 400_000
        too_much = Capacity((Utilisation(900_000, 90.0),), 2)
        assert too_much.hops_per_s == pytest.approx(700_000)

    def test_an_estimate_grows_with_cpus_but_one_thread_carries_all(self) -> None:
        carried = [Capacity((), cpus).hops_per_s for cpus in (1, 2, 4, 8, 64)]
        assert carried == sorted(carried)
        assert carried[-1] == carried[-2]

    def test_the_rate_carried_is_carried(self) -> None:
        rate = rate_carried(TWO_CORES, TopologySpec("fat_tree", {"k": 8}))
        assert 5.0 < rate < 10.0
        assert TWO_CORES.busy_pct(demand(spec(rate_mbps=rate)).hops_per_s) == pytest.approx(70.0)

    @pytest.mark.parametrize(
        ("rate", "typed"),
        [(7.4, 7.0), (1.94, 1.9), (38.2, 30.0), (0.043, 0.04), (100.0, 100.0), (49.9999999, 50.0)],
    )
    def test_rates_to_type(self, rate: float, typed: float) -> None:
        assert rounded_down(rate) == pytest.approx(typed)


class TestRate:
    def test_what_fits_is_one_line_with_this_machines_figure(self) -> None:
        (advice,) = advice_on(spec(), spec(subflows=1))
        assert (advice.lesson, advice.severity, advice.urgent) == ("rate", "fits", False)
        assert "0.47 M packet-hops/s" in advice.text and "0.5 M at 55 % busy" in advice.text

    def test_what_does_not_fit_says_what_would(self) -> None:
        (advice,) = advice_on(spec(12, 10.0), spec(12, 10.0, 1))
        assert (advice.severity, advice.urgent) == ("warning", True)
        assert "2 of 2 points will be suspect" in advice.text
        k, rate = re.search(r"choose --k (\d+) or --rate ([\d.]+) or --engine linux,", advice.text).groups()  # type: ignore[union-attr]
        for other in (spec(int(k), 10.0), spec(12, float(rate))):
            assert advice_on(other)[0].severity == "fits"

    def test_cpu_bound_on_purpose_is_no_warning(self) -> None:
        jobs = [job(spec(4, 1000.0), cpu_bound=True), job(spec(10), cpu_bound=True, known=False)]
        (advice,) = advise(jobs, TWO_CORES, ROOMY)
        assert (advice.severity, advice.urgent) == ("note", True)
        assert "2 points" in advice.text

    def test_a_rate_yet_to_be_measured_will_fit(self) -> None:
        (advice,) = advise([job(spec(), known=False)], TWO_CORES, ROOMY)
        assert "measured first" in advice.text and not advice.urgent

    def test_a_baseline_alone_needs_none(self) -> None:
        assert advice_on(baseline_of(spec())) == []


class TestScale:
    def test_more_processes_than_memory(self) -> None:
        wanted = spec(8, 1.0, matrix="all_to_all")
        scale = next(a for a in advice_on(wanted, free_mb=4000) if a.lesson == "scale")
        assert (scale.severity, scale.urgent) == ("warning", True)
        assert "32512 iperf3 processes" in scale.text and "--traffic native" in scale.text
        native = dataclasses.replace(wanted, traffic="native", transport=TransportSpec(1))
        assert all(a.lesson != "scale" for a in advice_on(native, free_mb=4000))

    def test_no_rate_is_advised_that_measures_bursts(self) -> None:
        (advice,) = advice_on(spec(32, 10.0))
        assert "--engine simulator" in advice.text
        assert "--rate" not in advice.text


class TestQueues:
    def lines(self, wanted: RunSpec) -> list[Advice]:
        return [a for a in advice_on(wanted) if a.lesson == "queues"]

    def test_a_hundred_packets_at_one_megabit_are_more_than_a_second(self) -> None:
        (advice,) = self.lines(spec(rate_mbps=1.0, subflows=1))
        assert "a full queue of 100 packets takes 1.2 s at 1 Mb/s, 6 times the minimum RTO" in advice.text
        fitting = int(re.search(r"--queue (\d+)", advice.text)[1])  # type: ignore[index]
        assert self.lines(queue(spec(rate_mbps=1.0, subflows=1), fitting)) == []

    def test_below_the_bandwidth_delay_product(self) -> None:
        wanted = queue(spec(rate_mbps=10.0, subflows=1), 20, delay_us=5000.0)
        (advice,) = self.lines(wanted)
        assert advice.severity == "warning"
        enough = int(re.search(r"--queue (\d+)", advice.text)[1])  # type: ignore[index]
        assert enough > 6 * 2 * 5000 / 1211
        assert self.lines(queue(wanted, enough, delay_us=5000.0)) == []

    def test_mptcp_needs_time_to_settle(self) -> None:
        hasty = dataclasses.replace(spec(4, 10.0), warmup_s=3.0)
        (advice,) = self.lines(hasty)
        assert "52 ms at 10 Mb/s" in advice.text and "--warmup 20" in advice.text
        assert self.lines(dataclasses.replace(hasty, warmup_s=10.0)) == []
        assert self.lines(dataclasses.replace(hasty, transport=TransportSpec(1))) == []


class TestCommands:
    @pytest.fixture(autouse=True)
    def machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calibrate, "capacity", lambda: TWO_CORES)
        monkeypatch.setattr(advising, "free_memory_mb", lambda: ROOMY)

    def plan(self, tmp_path: Path, *options: str) -> str:
        done = CliRunner().invoke(
            main, ("plan", EXPERIMENT, *options, "--results", str(tmp_path / "results"))
        )
        assert done.exit_code == 0, done.output
        return done.stdout

    def test_run_says_what_will_be_suspect_before_it_starts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(registry.ENGINES, "mininet", lambda: FakeEngine(name="mininet"))
        run = ("run", EXPERIMENT, "--k", "4", "--subflows", "1,2", "--rate", "10", "--results", str(tmp_path))
        monkeypatch.setattr(calibrate, "capacity", lambda: Capacity((Utilisation(20_000, 90.0),), 1))
        first = CliRunner().invoke(main, run).stdout
        assert first.index("note: warning: k=4 one_to_one with 2 subflows") < first.index("[1/")
        assert "warning" not in CliRunner().invoke(main, run).stdout, "nothing is left to run"
        monkeypatch.setattr(calibrate, "capacity", lambda: TWO_CORES)
        assert "warning" not in CliRunner().invoke(main, (*run, "--force")).stdout

    def test_doctor_checks_noise_against_the_rates_that_cpus_allow(self) -> None:
        quiet = doctor.noise_check(QUIET, 13.2, TWO_CORES)
        assert (quiet.ok, quiet.needed, quiet.mark) == (True, False, "ok  ")
        noisy = doctor.noise_check(dataclasses.replace(QUIET, late_p99_us=4100.0), 13.2, TWO_CORES)
        assert (noisy.ok, noisy.needed, noisy.mark) == (False, False, "lack"), "noise alone makes none unfit"
        assert "50 Mb/s" in noisy.seen and "--engine simulator" in noisy.fix


def test_scattered_packets_ask_for_as_much_as_eight_subflows() -> None:
    tcp, mptcp = (
        RunSpec(LinkSpec(5.0), TopologySpec("fat_tree", {"k": 8}), TransportSpec(n)) for n in (1, 8)
    )
    scattered = dataclasses.replace(tcp, routing="scatter")
    assert demand(tcp).hops_per_s < demand(scattered).hops_per_s == demand(mptcp).hops_per_s
