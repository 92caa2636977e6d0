"""DCTCP over marking queues: a short queue at full throughput, measured against drop-tail in one session."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from engines.emulation.engine import MininetEngine
from engines.emulation.machine import bpf_support
from engines.engine import Silent
from experiments import dctcp as experiment
from harness.options.options import UserOptions, resolve
from model.reasons import texts
from model.result import RunResult
from model.spec import RunSpec
from tests.support.machine_noise import doubts, exact, repeated, skip_if_repaired

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

SECONDS = 5.0


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunResult]:
    """The experiment's own points, shorter."""
    if not bpf_support().ok:
        pytest.skip(bpf_support().text)
    raw = tmp_path_factory.mktemp("raw")
    options = resolve(UserOptions.of(seconds=SECONDS, warmup=3.0, traffic="native"), experiment.DEFAULTS)
    drop_tail, _, marked = experiment.points(options, lambda _: options.rate_mbps or 0.0)
    return {"drop-tail": run(drop_tail, raw), "dctcp": run(marked, raw)}


def run(wanted: RunSpec, raw: Path) -> RunResult:
    engine = MininetEngine()
    try:
        engine.check(wanted)
        return repeated(lambda: engine.run(wanted, Silent(), raw), calmly=True)
    finally:
        engine.close()


def queue(result: RunResult) -> npt.NDArray[np.int64]:
    """Return the bottleneck's queue length at every sampled instant of the window."""
    busiest = max((p for p in result.ports if p.layer == "edge-host"), key=lambda port: port.tx_bytes)
    times = np.unique(result.samples["queue_times"]["t_s"])
    table = result.samples["queues"]
    lengths = np.zeros(len(times), np.int64)
    mine = table["port"] == busiest.port
    lengths[np.searchsorted(times, table["t_s"][mine])] = table["pkts"][mine]
    return lengths[times >= 0]


def doubts_of(results: dict[str, RunResult]) -> str:
    return texts(reason for result in results.values() for reason in doubts(result))


def test_the_queue_stays_near_the_threshold_where_drop_tail_fills_the_buffer(
    results: dict[str, RunResult],
) -> None:
    skip_if_repaired(*results.values())
    threshold = experiment.DEFAULTS.ecn_pkts or 0
    low, median = (
        {name: float(np.percentile(queue(result), share)) for name, result in results.items()}
        for share in (10, 50)
    )
    why = doubts_of(results)
    assert low["dctcp"] <= threshold, why
    assert low["dctcp"] < low["drop-tail"] / 5, why
    assert threshold / 2 <= median["dctcp"] <= 1.5 * threshold, why
    assert median["dctcp"] < median["drop-tail"] / 5, why


def test_throughput_is_that_of_drop_tail(results: dict[str, RunResult]) -> None:
    skip_if_repaired(*results.values())
    got = {name: sum(flow.goodput_mbps for flow in result.flows) for name, result in results.items()}
    assert got["dctcp"] >= 0.95 * got["drop-tail"], doubts_of(results)


def test_marks_do_what_drops_did(results: dict[str, RunResult]) -> None:
    with exact():
        assert results["drop-tail"].metrics["marked"] == 0
        assert results["dctcp"].metrics["marked"] > 100
        assert {flow.cc for flow in results["dctcp"].flows} == {"dctcp"}
