"""The fake engine: same spec same numbers, a plausible curve, and misbehaviour on request."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from common.errors import RunError, UsageError
from engines import registry
from engines.fake import FakeEngine, mean_share
from model.reasons import texts
from model.result import SAMPLE_COLUMNS, RunResult, Status
from model.spec import (
    LinkSpec,
    RunSpec,
    SamplingSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)


class Listener:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, float]] = []

    def phase(self, name: str, seconds: float) -> None:
        self.phases.append((name, seconds))

    def note(self, text: str) -> None:
        pytest.fail(text)


def spec_of(subflows: int = 1, seed: int = 1, matrix: str = "one_to_one", k: int = 4) -> RunSpec:
    return RunSpec(
        link=LinkSpec(10.0),
        topology=TopologySpec("fat_tree", {"k": k}),
        transport=TransportSpec(subflows),
        workload=WorkloadSpec(matrix),
        engine="fake",
        seed=seed,
    )


def run(spec: RunSpec, raw: Path, engine: FakeEngine | None = None) -> RunResult:
    engine = engine or FakeEngine()
    engine.check(spec)
    return engine.run(spec, Listener(), raw)


def test_same_seed_same_result_other_seed_other_result(tmp_path: Path) -> None:
    assert run(spec_of(4), tmp_path) == run(spec_of(4), tmp_path)
    one, other = run(spec_of(4), tmp_path), run(spec_of(4, seed=2), tmp_path)
    assert [f.goodput_mbps for f in one.flows] != [f.goodput_mbps for f in other.flows]
    assert [f.dst for f in one.flows] != [f.dst for f in other.flows]


def test_every_transport_sees_the_same_permutation(tmp_path: Path) -> None:
    pairs = [[(f.src, f.dst) for f in run(spec_of(n), tmp_path).flows] for n in (1, 2, 8)]
    assert pairs[0] == pairs[1] == pairs[2]
    assert len(pairs[0]) == len({src for src, _ in pairs[0]}) == len({dst for _, dst in pairs[0]}) == 16


def test_the_curve_rises_and_stays_below_the_link(tmp_path: Path) -> None:
    shares = [mean_share(n) for n in range(1, 33)]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(0.5)
    assert shares[-1] < 1
    reference = run(spec_of(matrix="reference"), tmp_path).flows[0].goodput_mbps
    for subflows in (1, 2, 8, 32):
        result = run(spec_of(subflows), tmp_path)
        assert all(0 < f.goodput_mbps <= reference < 10.0 for f in result.flows)
        assert all(f.bytes_received == round(f.goodput_mbps * 1e6 / 8 * 40) for f in result.flows)
        assert all(0 < p.utilisation_pct <= 100 for p in result.ports)


def test_samples_are_the_promised_tables(tmp_path: Path) -> None:
    spec = dataclasses.replace(spec_of(), sampling=SamplingSpec(500, 1000, 1000), warmup_s=2.0, seconds=3.0)
    result = run(spec, tmp_path)
    assert result.samples.keys() == SAMPLE_COLUMNS.keys()
    for name, promised in SAMPLE_COLUMNS.items():
        assert set(promised) <= set(result.samples[name].columns), name
    assert set(result.samples["cpu"]["t_s"].tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert set(run(spec_of(), tmp_path).samples) == {"goodput", "cpu", "links", "ports"}


def test_misbehaviour_on_request(tmp_path: Path) -> None:
    engine = FakeEngine(
        fail=lambda spec: spec.seed == 2,
        suspect=lambda spec: spec.seed == 3,
        interrupt=lambda spec: spec.seed == 4,
    )
    assert run(spec_of(), tmp_path, engine).status is Status.OK
    with pytest.raises(RunError):
        run(spec_of(seed=2), tmp_path, engine)
    suspect = run(spec_of(seed=3), tmp_path, engine)
    assert (suspect.status, texts(suspect.reasons)) == (Status.SUSPECT, "this point is set to be suspect")
    with pytest.raises(KeyboardInterrupt):
        run(spec_of(seed=4), tmp_path, engine)


@pytest.mark.parametrize("spec", [spec_of(k=5), spec_of(k=34), spec_of(matrix="nobody_to_nobody")])
def test_check_refuses_what_cannot_be_faked(spec: RunSpec) -> None:
    with pytest.raises(UsageError):
        FakeEngine().check(spec)


def test_phases_are_reported_with_their_seconds(tmp_path: Path) -> None:
    listener = Listener()
    FakeEngine().run(spec_of(), listener, tmp_path)
    assert listener.phases == [("warm-up", 10.0), ("measure", 40.0)]


def test_the_registry_makes_engines_by_name() -> None:
    assert registry.make("fake").name == "fake"
    assert set(registry.ENGINES) == {
        "mininet", "linux", "simulator", "flow-level", "max-min", "ideal", "fake",
    }  # fmt: skip
    with pytest.raises(UsageError, match="engine ns3: unknown; choose from: mininet, linux, simulator"):
        registry.make("ns3")
