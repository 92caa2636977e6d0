"""Settings of a StackSpec that real hosts follow, and those that are refused in one line."""

from __future__ import annotations

import dataclasses

import pytest

from common.errors import UsageError
from engines.kernel_hosts import RouteMetrics, check_stack, on_the_wire, route_metrics, sysctls
from model.spec import LinkSpec, RunSpec, StackSpec, TransportSpec

RANKED = RunSpec(LinkSpec(10.0, discipline="pfabric"), transport=TransportSpec(1, "mintcp"), traffic="native")


def stacked(**fields: object) -> RunSpec:
    return dataclasses.replace(RANKED, stack=StackSpec(**fields))  # type: ignore[arg-type]


def test_first_window_minimum_rto_and_acknowledgements_are_the_routes() -> None:
    spec = stacked(initial_window=12, min_rto_ms=30, delayed_ack_ms=0, max_window=15, rank="sent")
    check_stack(spec)
    assert route_metrics(spec.stack) == RouteMetrics(12, 30, quickack=True)
    assert route_metrics(StackSpec()) == RouteMetrics()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (stacked(payload_bytes=1460), "payload_bytes=1460"),
        (stacked(fixed_rto=True), "fixed_rto=on"),
        (stacked(min_rto_ms=0.045), "whole ms"),
        (stacked(delayed_ack_ms=10), "delayed_ack_ms=10"),
        (dataclasses.replace(stacked(max_window=15), transport=TransportSpec(1, "reno")), "--cc mintcp"),
        (dataclasses.replace(stacked(rank="sent"), link=LinkSpec(10.0)), "--discipline pfabric"),
    ],
)
def test_the_rest_is_refused_by_name(spec: RunSpec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_stack(spec)


def test_segments_without_timestamps_carry_twelve_bytes_more() -> None:
    assert (on_the_wire(RANKED).payload_bytes, on_the_wire(RANKED).header_bytes) == (1460, 54)
    reno = dataclasses.replace(RANKED, transport=TransportSpec(1, "reno"))
    assert on_the_wire(reno) == StackSpec()
    assert not sysctls("reno")
