"""Keys of specs: equal for specs that differ only in ignored fields."""

from __future__ import annotations

import dataclasses

import pytest

from model.spec import LinkSpec, RunSpec, SamplingSpec, TransportSpec, WorkloadSpec

SPEC = RunSpec(
    link=LinkSpec(10.0), transport=TransportSpec(8, "lia"), workload=WorkloadSpec("stride", {"i": 4})
)


def test_a_key_tells_apart_what_decides_the_outcome_and_nothing_else() -> None:
    assert SPEC.key() == dataclasses.replace(SPEC, sampling=SamplingSpec(queues_ms=10)).key()
    assert SPEC.key() != dataclasses.replace(SPEC, seed=2).key()
    assert SPEC.key() == SPEC.canonical()


def test_ignored_fields_may_differ_and_others_may_not() -> None:
    other = dataclasses.replace(SPEC, seed=2, transport=TransportSpec(1, "lia"), workload=WorkloadSpec())
    ignored = ("seed", "transport.subflows", "workload")
    assert SPEC.key(ignoring=ignored) == other.key(ignoring=ignored)
    assert SPEC.key(ignoring=ignored[:2]) != other.key(ignoring=ignored[:2])
    slower = dataclasses.replace(SPEC, link=LinkSpec(5.0))
    assert SPEC.key(ignoring=["link.rate_mbps"]) == slower.key(ignoring=["link.rate_mbps"])


def test_neutral_fields_have_their_defaults() -> None:
    neutral = SPEC.neutral("transport.cc", "workload", "link.rate_mbps")
    assert (neutral.transport, neutral.workload) == (TransportSpec(8), WorkloadSpec())
    assert neutral.link.rate_mbps == 0
    assert SPEC.neutral() == SPEC


@pytest.mark.parametrize("path", ["colour", "link.colour", "seed.colour"])
def test_a_path_to_no_field_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="has no field"):
        SPEC.key(ignoring=[path])
