"""Hosts of subflow-idle are tuned as hosts of their engine can be, and charts tell the tunings apart."""

from __future__ import annotations

import dataclasses

from experiments.registry import EXPERIMENTS
from harness.options.options import UserOptions, resolve
from model import tuning
from model.spec import LinkSpec, RunSpec, StackSpec, TransportSpec

(FIGURE,) = EXPERIMENTS["subflow-idle"].figures


def specs(engine: str) -> list[RunSpec]:
    return FIGURE.points(resolve(UserOptions.of(engine=engine), FIGURE.defaults), lambda _topology: 20.0)


def test_real_hosts_by_sysctls_and_simulated_ones_by_buffers() -> None:
    real, simulated = specs("mininet"), specs("simulator")
    assert all(spec.transport.sysctls and spec.stack == StackSpec() for spec in real)
    assert all(spec.stack.scheduler == "burst" and not spec.transport.sysctls for spec in simulated)
    assert len({spec.content_hash() for spec in simulated}) == len(simulated) == 4


def test_each_tuning_has_words_of_its_own() -> None:
    words = [tuning.words_of(spec) for spec in specs("simulator")]
    assert words == [f"send buffer {segments}" for segments in (792, 1584, 3168, 4529)]
    assert tuning.words_of(RunSpec(LinkSpec(5.0), transport=TransportSpec(8))) == tuning.DEFAULT
    assert len({tuning.words_of(spec) for spec in specs("mininet")}) == 8


def test_without_their_tuning_they_are_one_setting() -> None:
    of = specs("simulator")
    assert (
        len({dataclasses.replace(spec, stack=tuning.untuned(spec.stack)).content_hash() for spec in of}) == 1
    )
