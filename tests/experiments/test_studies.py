"""Studies of settings, and figures with several networks: points, and verdicts of each network by itself."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pytest

from analysis.noise_effects import delay_share
from common.errors import UsageError
from engines.registry import SIMULATOR
from experiments.registry import EXPERIMENTS
from harness.baseline import baseline_of, is_baseline
from harness.claims.claims import AGREES, DIFFERS, NOT_MEASURED, verdicts
from harness.claims.own_settings import OwnSettings
from harness.compare.compare import conditions, match
from harness.experiment import Figure
from harness.metrics import published, summary_csv
from harness.metrics.metrics import GOODPUT_PCT_MEAN
from harness.metrics.published import Published, Relation, Source
from harness.options.options import resolve
from harness.plan import session
from harness.results import point_results
from harness.results.point_results import PointResult
from harness.results.store import Store, load
from model import tuning
from model.noise import QUIET, lateness_ms, noisy
from model.spec import CLOCKS, OF_ALL, OF_FABRIC, OF_HOSTS, NoiseSpec, RunSpec, StackSpec, TopologySpec
from plots.data import Inputs, panels
from tests.support.fake_engine import FakeEngine
from tests.support.figures import points_of
from tests.support.options import options_typed
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of


def noise_specs(name: str, engine: str) -> list[RunSpec]:
    (figure,) = EXPERIMENTS[name].figures
    defaults = figure.emulated if engine == "mininet" else figure.defaults
    assert defaults is not None
    return points_of(figure, defaults, engine=engine)


def hashes(points: list[RunSpec]) -> set[str]:
    return {spec.content_hash() for spec in points}


@pytest.mark.parametrize("name", ["noise", "noise-short"])
@pytest.mark.parametrize("engine", [SIMULATOR, "mininet"])
def test_every_noisy_point_stands_beside_a_quiet_one(name: str, engine: str) -> None:
    points = noise_specs(name, engine)
    quiet = [spec for spec in points if not noisy(spec)]
    assert hashes([dataclasses.replace(spec, noise=QUIET) for spec in points]) == hashes(quiet)
    assert {spec.noise.where for spec in points if noisy(spec)} == {OF_FABRIC, OF_HOSTS, OF_ALL}
    assert len(points) > 3 * len(quiet)


def test_lateness_is_up_to_50_ms_and_shares_of_delay_cover_two_decades() -> None:
    points = [spec for spec in noise_specs("noise", SIMULATOR) if noisy(spec)]
    assert {round(lateness_ms(spec.noise, 0.99), 1) for spec in points} >= {2, 5, 10, 20, 50}
    shares = [delay_share(spec) for spec in points]
    assert min(shares) < 0.02
    assert max(shares) > 1.5
    assert len({spec.seed for spec in points}) >= 6


def test_real_hosts_have_both_clocks() -> None:
    assert {spec.clock for spec in noise_specs("noise", "mininet")} == set(CLOCKS)


def test_the_baseline_is_quiet_whatever_the_noise() -> None:
    baselines = [baseline_of(spec) for spec in noise_specs("noise", "mininet")]
    assert len(hashes(baselines)) == 1
    assert is_baseline(baselines[0])
    assert not noisy(baselines[0])


def test_it_has_networks_of_its_own() -> None:
    with pytest.raises(UsageError, match="noise fixes its own rate: leave out --rate"):
        session.make_plan(EXPERIMENTS["noise"], options_typed(engine="fake", rate="5"), FakeEngine())


def test_stalls_and_clock_reach_every_point() -> None:
    (figure,) = EXPERIMENTS["cross-check"].figures
    points = points_of(figure, engine=SIMULATOR, stalls="all:100:2-6", clock="strict")
    assert {(spec.noise, spec.clock) for spec in points} == {(NoiseSpec("all", 100, 2, 6), "strict")}


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"stalls": "all"}, "write WHERE"),
        ({"stalls": "all:10:4-8"}, "at most 50 %"),
        ({"clock": "sundial"}, "choose from: elastic, strict"),
        ({"clock": "strict", "dataplane": "ovs", "rate": "1"}, "is the fabric's"),
    ],
)
def test_unknown_stalls_and_clocks_are_refused(typed: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        resolve(options_typed(**typed), EXPERIMENTS["cross-check"].figures[0].defaults)


(FIGURE,) = EXPERIMENTS["subflow-idle"].figures


def idle_specs(engine: str) -> list[RunSpec]:
    return points_of(FIGURE, engine=engine)


def test_real_hosts_by_sysctls_and_simulated_ones_by_buffers() -> None:
    real, simulated = idle_specs("mininet"), idle_specs("simulator")
    assert all(spec.transport.sysctls and spec.stack == StackSpec() for spec in real)
    assert all(spec.stack.scheduler == "burst" and not spec.transport.sysctls for spec in simulated)
    untuned = [
        dataclasses.replace(spec, stack=dataclasses.replace(spec.stack, send_buffer=0, receive_buffer=0))
        for spec in simulated
    ]
    assert len(hashes(simulated)) == 4 and len(hashes(untuned)) == 1
    assert [len({tuning.words_of(spec) for spec in specs}) for specs in (real, simulated)] == [8, 4]


PLAIN = Published(
    GOODPUT_PCT_MEAN, "fat_tree", 4, "one_to_one", 1, Relation.ABOUT, 80, Source.TEXT, "words", "paper",
    "citation", 1.0, "because",
)  # fmt: skip
FOUR = dataclasses.replace(PLAIN.on(oversubscription=4), value=20)
ONE_FIGURE: Figure = dataclasses.replace(EXPERIMENTS[EXPERIMENT].figures[0], published=(PLAIN, FOUR))


def spec(oversubscription: int) -> RunSpec:
    params = {"k": 4} if oversubscription == 1 else {"k": 4, "oversubscription": oversubscription}
    return dataclasses.replace(spec_of(), topology=TopologySpec("fat_tree", params))


@pytest.fixture
def points(tmp_path: Path) -> list[PointResult]:
    """Return both trees with their baselines; flows of the oversubscribed tree reach a quarter."""
    store = Store.open(tmp_path, EXPERIMENT)
    for times, mbps in ((1, 4.0), (4, 1.0)):
        put_baseline(store, spec(times), 5.0)
        put(store, spec(times), result_of([mbps]))
    return point_results.judge(load(store.directory))


def test_each_verdict_is_of_its_own_network(points: list[PointResult]) -> None:
    words = [(v.word, v.measured.value if v.measured else None) for v in verdicts(ONE_FIGURE, points)]
    assert words == [(AGREES, 80.0), (AGREES, 20.0)]
    swapped = [p for p in points if p.spec.topology.params.get("oversubscription") == 4]
    assert [v.word for v in verdicts(ONE_FIGURE, swapped)] == [NOT_MEASURED, AGREES]
    wrong = dataclasses.replace(ONE_FIGURE, published=(dataclasses.replace(FOUR, value=80),))
    assert [v.word for v in verdicts(wrong, points)] == [DIFFERS]


def test_a_network_given_with_its_defaults_is_the_same(points: list[PointResult]) -> None:
    given = dataclasses.replace(PLAIN, shape=(("oversubscription", 1),))
    assert given.is_on(TopologySpec("fat_tree", {"k": 4}))
    (verdict,) = verdicts(dataclasses.replace(ONE_FIGURE, published=(given,)), points)
    assert verdict.word == AGREES


def test_a_level_is_drawn_on_its_own_network(points: list[PointResult]) -> None:
    own = OwnSettings([ONE_FIGURE])
    inputs = Inputs(points, Path(), levels=ONE_FIGURE.published, applies=lambda *of: not own.unlike(*of))
    shown = [
        [level.value for level in inputs.beside(panel, GOODPUT_PCT_MEAN.quantity)] for panel in panels(points)
    ]
    assert shown == [[80], [20]]


def test_tables_show_the_number_published_for_that_network() -> None:
    known = (PLAIN, FOUR)
    found = [
        published.find(known, GOODPUT_PCT_MEAN, spec(times).topology, "one_to_one", 1, "tcp")
        for times in (1, 4, 2)
    ]
    assert found == [PLAIN, FOUR, None]


def test_the_summary_tells_them_apart(tmp_path: Path, points: list[PointResult]) -> None:
    store = Store.open(tmp_path, EXPERIMENT)
    summary_csv.write(store, points)
    with (store.directory / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["workload"] != "reference"]
    assert [(row["k"], row["topology_params"]) for row in rows] == [("4", ""), ("4", "oversubscription=4")]


def test_two_folders_are_compared_network_by_network(points: list[PointResult]) -> None:
    of = conditions(judged for judged in points if judged.spec.workload.matrix != "reference")
    found = match(of, of)
    assert len(found.pairs) == 2
    assert not (found.ambiguous or found.only_a or found.only_b)
    assert all(pair.differing == () for pair in found.pairs)
