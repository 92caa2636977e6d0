"""The experiment `noise`: every noisy point has a quiet counterpart, and lateness covers its range."""

from __future__ import annotations

import dataclasses

import pytest

from analysis.noise_effects import delay_share
from common.errors import UsageError
from engines.registry import SIMULATOR
from experiments.registry import EXPERIMENTS
from harness.baseline import baseline_of, is_baseline
from harness.options.options import UserOptions, resolve
from harness.plan import session
from model import tuning
from model.noise import QUIET, lateness_ms, noisy
from model.spec import CLOCKS, OF_ALL, OF_FABRIC, OF_HOSTS, NoiseSpec, RunSpec, StackSpec
from tests.support.fake_engine import FakeEngine
from tests.support.figures import points_of


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
        session.make_plan(EXPERIMENTS["noise"], UserOptions.of(engine="fake", rate="5"), FakeEngine())


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
        resolve(UserOptions.of(**typed), EXPERIMENTS["cross-check"].figures[0].defaults)


(FIGURE,) = EXPERIMENTS["subflow-idle"].figures


def idle_specs(engine: str) -> list[RunSpec]:
    return points_of(FIGURE, engine=engine)


def test_real_hosts_by_sysctls_and_simulated_ones_by_buffers() -> None:
    real, simulated = idle_specs("mininet"), idle_specs("simulator")
    assert all(spec.transport.sysctls and spec.stack == StackSpec() for spec in real)
    assert all(spec.stack.scheduler == "burst" and not spec.transport.sysctls for spec in simulated)
    untuned = [dataclasses.replace(spec, stack=tuning.untuned(spec.stack)) for spec in simulated]
    assert len(hashes(simulated)) == 4 and len(hashes(untuned)) == 1
    assert [len({tuning.words_of(spec) for spec in specs}) for specs in (real, simulated)] == [8, 4]
