"""Planned flows: their ports on hosts that start more flows than they have ports, and refusals."""

from __future__ import annotations

import dataclasses
import json

import pytest

import topos
from common.errors import UsageError
from engines.emulation.engine import MininetEngine
from model.flows import MAX_FLOWS_A_HOST, PlannedFlow, check_ports, planned_flows
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec

STAR = TopologySpec("star", {"n": 2})


def spec(matrix: str, **params: int | str) -> RunSpec:
    return RunSpec(
        LinkSpec(100.0), STAR, TransportSpec(8, "lia"), WorkloadSpec(matrix, params),
        traffic="native", warmup_s=1, seconds=3,
    )  # fmt: skip


def planned(of: RunSpec) -> tuple[PlannedFlow, ...]:
    return planned_flows(of, topos.build(of.topology.kind, of.topology.params))


def test_ports_begin_again_and_stay_ports() -> None:
    flows = planned(spec("poisson", load=90, sizes="fixed-10000"))
    assert len(flows) > 2 * MAX_FLOWS_A_HOST
    assert max(flow.cport + 7 * MAX_FLOWS_A_HOST for flow in flows) < 32768
    assert max(flow.port for flow in flows) < 65536
    assert len({(flow.src, flow.cport, flow.dst, flow.port) for flow in flows}) == len(flows)


def test_real_hosts_have_no_more_ports() -> None:
    with pytest.raises(UsageError, match="--engine simulator"):
        check_ports(planned(spec("poisson", load=90, sizes="fixed-10000")))
    check_ports(planned(spec("poisson", load=1, sizes="fixed-100000")))


@pytest.mark.parametrize(("matrix", "params"), [("poisson", {"load": 1}), ("closed_loop", {"think_ms": 100})])
def test_iperf3_has_no_sizes(matrix: str, params: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="--traffic native"):
        MininetEngine().check(dataclasses.replace(spec(matrix, **params), traffic="iperf3"))


def test_a_spec_with_texts_survives_json_and_has_a_hash_of_its_own() -> None:
    here, other = spec("poisson", sizes="websearch"), spec("poisson", sizes="datamining")
    assert RunSpec.from_json(json.loads(json.dumps(here.to_json()))) == here
    assert here.content_hash() != other.content_hash()


def test_each_field_is_part_of_a_points_name() -> None:
    of = spec("one_to_one")
    used = [
        dataclasses.replace(of, transport=dataclasses.replace(of.transport, join_after_ms=1)),
        dataclasses.replace(of, transport=dataclasses.replace(of.transport, join_after_bytes=1)),
        dataclasses.replace(of, stack=dataclasses.replace(of.stack, dup_threshold=19)),
    ]
    assert len({one.content_hash() for one in (of, *used)}) == 4
    assert all(RunSpec.from_json(json.loads(json.dumps(one.to_json()))) == one for one in used)
