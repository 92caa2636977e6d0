"""Ranges of the numbers of a spec: complete, closed, and enforced for Python as for command lines."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest

from common.errors import UsageError
from harness.options.fields import SPEC_FIELDS
from harness.options.parsers import limited
from model.spec import LIMITS, LinkEvent, LinkSpec, NoiseSpec, RunSpec, StackSpec, TopologySpec, TransportSpec
from tests.support.simulated_networks import result_of

SPEC = RunSpec(
    LinkSpec(10.0, 100.0), TopologySpec("star", {"n": 2}), engine="simulator", warmup_s=0.01, seconds=0.02
)


def numbers(part: Any, prefix: str = "") -> set[str]:
    """Return the paths of all numbers in a part of a spec."""
    found = set()
    for field in dataclasses.fields(part):
        value, path = getattr(part, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            found |= numbers(value, f"{path}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found.add(path)
    return found


def test_every_number_of_a_spec_has_a_range() -> None:
    assert numbers(SPEC) == set(LIMITS)


@pytest.mark.parametrize("path", LIMITS)
def test_ends_are_allowed_and_what_lies_beyond_is_refused(path: str) -> None:
    limits = LIMITS[path]
    for end, step in ((limits.least, -1), (limits.most, 1)):
        value = int(end) if limits.whole else end
        assert limits.problem(value) == ""
        beyond = value + step if limits.whole else math.nextafter(value, step * math.inf)
        if not (limits.zero and beyond == 0):
            with pytest.raises(UsageError, match=f"{path} of .*: must be"):
                SPEC.changed({path: beyond})


@pytest.mark.parametrize("path", LIMITS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1])
def test_no_range_holds_what_is_no_quantity(path: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"{path} of"):
        SPEC.changed({path: value})


def test_a_whole_number_is_not_a_fraction_a_truth_or_a_text() -> None:
    for value in (1.5, True, "1"):
        with pytest.raises(UsageError, match=r"transport\.subflows of .*: must be a"):
            SPEC.changed({"transport.subflows": value})


def test_options_have_the_ranges_of_their_fields() -> None:
    paths = {field.path for field in SPEC_FIELDS} & set(LIMITS)
    assert paths > {"link.delay_us", "link.queue_pkts", "link.loss", "transport.write_bytes"}
    for field in SPEC_FIELDS:
        if field.path in paths and field.path != "link.loss":
            most = LIMITS[field.path].most
            assert field.parse(field.flag, str(int(most))) == most
            with pytest.raises(UsageError, match=f"{field.flag} .*: must be at most"):
                field.parse(field.flag, str(int(most) + 1))


@pytest.mark.parametrize("seconds", ["1e-13", "0", "-1", "nan", "1e300"])
def test_a_window_that_the_clock_cannot_count_is_refused(seconds: str) -> None:
    with pytest.raises(UsageError, match="--seconds"):
        limited("seconds")("--seconds", seconds)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TransportSpec(0, "lia"), "transport.subflows of 0"),
        (lambda: TransportSpec(1, "hope"), "--cc hope: unknown"),
        (lambda: StackSpec(header_bytes=0, ack_bytes=0), "stack.ack_bytes of 0"),
        (lambda: StackSpec(mptcp_bytes=1448), "leaves no payload of 1448 bytes"),
        (lambda: StackSpec(min_rto_ms=1e15), "stack.min_rto_ms of 1e[+]15: must be at most 120000 ms"),
        (
            lambda: StackSpec(sack=1),  # type: ignore[arg-type]
            "stack.sack of 1: must be on or off",
        ),
        (lambda: StackSpec(acks="never"), "--stack acks=never: unknown; choose from: routed, at_once"),
        (lambda: LinkSpec(math.inf), "link.rate_mbps of inf"),
        (lambda: LinkSpec(1.0, ecn_pkts=100), "--ecn 100: a queue of 100 packets drops before"),
        (lambda: LinkSpec(1.0, random_pkts=101), "--random-drop 101: the queue holds 100 packets"),
        (
            lambda: RunSpec.from_json(RunSpec(LinkSpec(1.0), TopologySpec("star", {"m": 2})).to_json()),
            "topology star has no parameter 'm'",
        ),
        (lambda: LinkEvent(1.0, "a", "b", 2.0), "event.share of 2: must be at most 1"),
        (lambda: NoiseSpec("all", 10.0, 9.0, 9.0), "stalls would take 90 % of the time"),
    ],
)
def test_a_spec_that_exists_is_valid(make: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()


@pytest.mark.parametrize("path", [path for path in LIMITS if path.startswith("stack.")])
@pytest.mark.parametrize("end", ["least", "most"])
def test_the_simulator_runs_at_both_ends_of_every_range_of_its_stack(path: str, end: str) -> None:
    limits = LIMITS[path]
    value = getattr(limits, end)
    if path == "stack.mptcp_bytes":
        value = min(value, SPEC.stack.payload_bytes - 1)
    if path == "stack.start_spread_ms":
        value = min(value, 1.0)
    spec = SPEC.changed({path: int(value) if limits.whole else value})
    if path == "stack.payload_bytes" and end == "least":
        spec = spec.changed({"seconds": 0.1})
    if path == "stack.processing_frames" and end == "most":
        spec = spec.changed({"seconds": 1.0})
    a_segment_mbps = spec.stack.payload_bytes * 8e-6 / spec.seconds
    assert all(flow.goodput_mbps <= 10.0 + a_segment_mbps for flow in result_of(spec).flows)
