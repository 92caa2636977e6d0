"""summary.csv: the design's summary_csv, percentages of the right baseline, suspicion passed on."""

from __future__ import annotations

import csv
import dataclasses
import json

import pytest

import topos
from analysis.quantities import Quantity
from harness.baseline import baseline_of, is_baseline
from harness.metrics import summary_csv
from harness.metrics.metrics import Metric
from harness.results.point_results import PointResult, judge
from harness.results.store import Store, load, point_name
from model.reasons import LATE, RTT, Fault, Reason
from model.result import Status
from model.spec import AgentSpec, RunSpec, TopologySpec, TransportSpec
from tests.support.reasons import of_text
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of
from topos import from_file

DESIGN_COLUMNS = (
    "experiment,engine,dataplane,topology,k,hosts,workload,transport,subflows,cc,rate_mbps,queue_pkts,"
    "seconds,seed,status,reasons,goodput_mbps_mean,reference_mbps,goodput_pct_mean,goodput_pct_min,"
    "goodput_pct_median,goodput_pct_max,jain,cpu_busy_pct,late_p99_us,retransmits,drops,"
    "routing,loss_pct,ecn_pkts,write_bytes,sysctls,"
    "flows_started,flows_completed,fct_ms_mean,fct_ms_median,fct_ms_p99,slowdown_mean,slowdown_p99,"
    "topology_params,faults,cautions,attempts,kinds,algorithm,settings,point,"
    "calls_offered_per_s,calls_completed_per_s,setup_ms_p50,setup_ms_p95,pcscf_fill_pct,scscf_fill_pct"
)


def rows(store: Store) -> list[dict[str, str]]:
    summary_csv.write(store, load(store.directory))
    with (store.directory / "summary.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_columns_and_values(store: Store) -> None:
    put(store, spec_of(8), result_of([1.0, 2.0, 3.0]))
    put_baseline(store, spec_of(8), 4.0)
    baseline, point = rows(store)
    assert (store.directory / "summary.csv").read_text().splitlines()[0] == DESIGN_COLUMNS
    assert {column: value for column, value in point.items() if value} == {
        "experiment": EXPERIMENT, "engine": "mininet", "dataplane": "fabric", "topology": "fat_tree",
        "k": "4", "hosts": "16", "workload": "one_to_one", "transport": "mptcp", "subflows": "8",
        "cc": "reno", "rate_mbps": "5", "queue_pkts": "100", "seconds": "40", "seed": "1", "status": "ok",
        "goodput_mbps_mean": "2", "reference_mbps": "4", "goodput_pct_mean": "50", "goodput_pct_min": "25",
        "goodput_pct_median": "50", "goodput_pct_max": "75", "jain": "0.857143", "cpu_busy_pct": "31.25",
        "late_p99_us": "120", "retransmits": "9", "drops": "7", "routing": "hashed", "loss_pct": "0",
        "ecn_pkts": "0", "write_bytes": "0", "attempts": "1", "settings": "10 s warm-up",
        "point": point_name(spec_of(8)),
    }  # fmt: skip
    assert (baseline["workload"], baseline["goodput_pct_mean"]) == ("reference", "100")


def test_points_of_equal_names_are_told_apart(store: Store) -> None:
    def algorithm(text: str) -> TransportSpec:
        return TransportSpec(cc="mine.py", algorithm=json.dumps(text))

    def network(text: str) -> TopologySpec:
        return TopologySpec("file", {"name": "net", "network": text})

    of = spec_of()
    nets = [from_file.text_of(topos.build("star", {"n": n})) for n in (2, 3)]
    specs = [
        *(dataclasses.replace(of, transport=algorithm(text)) for text in ("one", "two")),
        *(dataclasses.replace(of, topology=network(text)) for text in nets),
        *(dataclasses.replace(of, agent=AgentSpec(delay_us=us)) for us in (100.0, 200.0)),
        *(dataclasses.replace(of, warmup_s=warmup_s) for warmup_s in (1.0, 2.0)),
    ]
    for spec in specs:
        put(store, spec, result_of([1.0]))
    found = {row["point"]: row for row in rows(store)}
    of_pairs = zip(specs[::2], specs[1::2], strict=True)
    for (one, other), column in zip(
        of_pairs, ("algorithm", "topology_params", "settings", "settings"), strict=True
    ):
        values = {found[point_name(spec)][column] for spec in (one, other)}
        assert len(values) == 2, column
        assert "" not in values


def test_own_metrics_are_the_last_columns(store: Store) -> None:
    put(store, spec_of(), result_of([1.0, 3.0]))

    def gap_mbps(judged: PointResult) -> float | None:
        return judged.goodput_mbps.maximum - judged.goodput_mbps.minimum if judged.goodput_mbps else None

    gap = Metric(Quantity("gap_mbps", "Mb/s", "the gap"), gap_mbps)
    summary_csv.write(store, load(store.directory), (gap,))
    with (store.directory / "summary.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row)[-1] == "gap_mbps"
    assert row["gap_mbps"] == "2"


def test_metrics_of_users_read_the_baseline_by_the_name_of_its_column(store: Store) -> None:
    put(store, spec_of(), result_of([2.0]))
    put_baseline(store, spec_of(), 4.0)
    metric = Metric(Quantity("baseline", "Mb/s", "its goodput"), lambda judged: judged.baseline_mbps)
    assert [metric.at(judged) for judged in judge(load(store.directory))] == [4.0, 4.0]


def test_without_a_baseline_there_are_no_percentages(store: Store) -> None:
    put(store, spec_of(), result_of([1.0]))
    put_baseline(store, spec_of(rate_mbps=10.0), 9.0)
    (point,) = [row for row in rows(store) if row["workload"] == "one_to_one"]
    assert (point["reference_mbps"], point["goodput_pct_mean"], point["goodput_mbps_mean"]) == ("", "", "1")


def test_a_failed_baseline_is_none_and_a_failed_point_has_no_numbers(store: Store) -> None:
    put(store, spec_of(), result_of([1.0], Status.FAILED, "iperf3 said no", "twice, at once"))
    put_baseline(store, spec_of(), 0.0, Status.FAILED)
    baseline, point = rows(store)
    assert (point["status"], point["reasons"]) == ("failed", "iperf3 said no; twice, at once")
    numbers = ("goodput_mbps_mean", "goodput_pct_mean", "goodput_pct_max", "jain", "reference_mbps")
    assert {point[name] for name in numbers} == {""}
    assert baseline["status"] == "failed"


def test_a_suspect_baseline_that_is_off_makes_its_points_suspect(store: Store) -> None:
    put(store, spec_of(), result_of([1.0]))
    put(store, spec_of(2), result_of([], Status.FAILED, "broke"))
    put_baseline(store, spec_of(), 4.0, Status.SUSPECT)
    _, tcp, mptcp = rows(store)
    assert (tcp["status"], tcp["reasons"]) == ("suspect", "its baseline is suspect")
    assert tcp["kinds"] == "baseline"
    assert (mptcp["status"], mptcp["reasons"]) == ("failed", "broke")


@pytest.mark.parametrize(("off", "status"), [(0.996, "ok"), (1.004, "ok"), (0.99, "suspect")])
def test_a_baseline_of_the_computed_goodput_is_right_whatever_the_machine_did(
    store: Store, off: float, status: str
) -> None:
    put(store, spec_of(), result_of([1.0]))
    noisy = result_of([off * 5 * 1448 / 1514], Status.SUSPECT, "CPU: no idle time left in 3 of 20 seconds")
    put(store, baseline_of(spec_of()), noisy)
    baseline, tcp = rows(store)
    assert (baseline["status"], tcp["status"]) == (status, status)
    assert bool(baseline["cautions"]) is (status == "ok"), "what the machine did is kept"


def test_a_baseline_under_another_congestion_control_is_suspect_at_any_goodput(store: Store) -> None:
    put_baseline(store, spec_of(), 5 * 1448 / 1514, Status.SUSPECT)
    (baseline,) = rows(store)
    assert baseline["status"] == "suspect"


def test_what_the_faults_were_stands_in_columns_of_its_own(store: Store) -> None:
    stolen = Reason(LATE, "late", Fault.HYPERVISOR)
    late = dataclasses.replace(
        result_of([1.0], Status.SUSPECT), reasons=(stolen, of_text("CPU: busy"), stolen)
    )
    rtt = dataclasses.replace(result_of([1.0]), cautions=(Reason(LATE, "RTT may be off", doubts=(RTT,)),))
    put(store, spec_of(), late)
    put(store, spec_of(2), rtt)
    tcp, mptcp = rows(store)
    assert (tcp["faults"], tcp["kinds"]) == ("hypervisor", "late, machine")
    assert (mptcp["status"], mptcp["cautions"]) == ("ok", "RTT may be off")


def test_a_baseline_of_zero_divides_nothing(store: Store) -> None:
    put(store, spec_of(), result_of([1.0]))
    put_baseline(store, spec_of(), 0.0)
    assert rows(store)[1]["goodput_pct_mean"] == ""


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({"engine": "fake"}, False),
        ({"dataplane": "ovs"}, False),
        ({"traffic": "iperf3"}, False),
        ({"routing": "ecmp"}, True),
        ({"routing": "scatter"}, True),
    ],
)
def test_the_baseline_is_of_the_same_network(change: dict[str, str], shared: bool) -> None:
    """One flow alone has nothing to gain from a choice of path."""
    spec = spec_of(8)
    other: RunSpec = dataclasses.replace(spec, **change)  # type: ignore[arg-type]
    assert (baseline_of(spec) == baseline_of(other)) is shared


def test_one_baseline_serves_transports_and_seeds() -> None:
    assert len({baseline_of(spec_of(n, seed=s)).canonical() for n in (1, 2, 8) for s in (1, 2)}) == 1
    baseline = baseline_of(spec_of(8, seed=5))
    assert is_baseline(baseline)
    assert baseline_of(baseline) == baseline
    assert not is_baseline(spec_of())
