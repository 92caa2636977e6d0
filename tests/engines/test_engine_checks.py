"""What engines refuse before they start, and that they use each field of a spec or refuse it."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

import topos
from common.errors import UsageError
from engines import kernel_hosts
from engines.emulation.dataplanes.ovs import dataplane as ovs
from engines.emulation.engine import MininetEngine, check_sysctls
from engines.emulation.hosts import shell
from engines.flow_level import engine as flow_level
from engines.kernel_hosts import RouteMetrics, check_stack, on_the_wire, route_metrics, sysctls
from engines.registry import make
from harness.options.fields import SPEC_FIELDS
from model.spec import LinkEvent, LinkSpec, RunSpec, SamplingSpec, StackSpec, TopologySpec, TransportSpec
from tests.support.specs.other_values import fields_of, other
from tests.support.topologies import with_first_link


def test_a_sysctl_must_be_one_of_this_kernel() -> None:
    check_sysctls(["net.ipv4.tcp_sack"])
    for wrong in ("net.ipv4.tcp_snack", "net.ipv4"):
        with pytest.raises(UsageError, match=f"--sysctl {wrong}: this kernel has no such sysctl"):
            check_sysctls([wrong])


OUTAGE = (LinkEvent(7.0, "p0a0", "c0"),)
RANKED: dict[str, Any] = {"link": LinkSpec(5.0, discipline="pfabric"), "traffic": "native"}


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"topology": TopologySpec("bcube", {"n": 4})}, "bcube: emulated hosts do not forward packets"),
        ({"events": (LinkEvent(1.0, "p0e0", "moon"),)}, "no node called 'moon'"),
        ({"reroute_ms": 50.0}, "--reroute 50: no link of this run fails: add --event"),
        (
            {"reroute_ms": 50.0, "events": OUTAGE, "dataplane": "ovs"},
            "--reroute 50: Open vSwitch's controller finds other paths as soon as a link fails",
        ),
        (
            {"reroute_ms": 50.0, "events": OUTAGE, "sampling": SamplingSpec(pings_ms=100)},
            "--reroute 50: pings do not follow flows",
        ),
        ({"routing": "valiant"}, "routing 'valiant': pings cannot follow its paths"),
        (
            {"link": LinkSpec(5.0, discipline="priority"), "dataplane": "ovs"},
            "queue discipline priority .* Open vSwitch.*: choose --dataplane fabric",
        ),
        ({**RANKED, "traffic": "iperf3"}, "choose --traffic native"),
        ({**RANKED, "transport": TransportSpec(2, "reno")}, "choose --subflows 1"),
        ({**RANKED, "link": replace(RANKED["link"], host_queue="qdisc")}, "leave out --host-queue qdisc"),
        ({"transport": TransportSpec(8, "reno", join_after_bytes=100_000)}, "the kernel has no event"),
        ({"transport": TransportSpec(8, "reno", join_after_ms=20_000.0)}, "use a longer --warmup"),
    ],
)
def test_the_emulator_refuses_what_it_cannot_do(asked: dict[str, Any], complaint: str) -> None:
    usual = {"topology": TopologySpec("fat_tree", {"k": 4}), "transport": TransportSpec(1, "reno")}
    with pytest.raises(UsageError, match=complaint):
        MininetEngine().check(RunSpec(**{"link": LinkSpec(5.0), "warmup_s": 6.0, **usual, **asked}))


def test_no_shell_opens_where_hosts_forward() -> None:
    with pytest.raises(UsageError, match="do not forward packets"):
        shell.main(RunSpec(LinkSpec(10.0), TopologySpec("bcube", {"n": 4, "k": 1})))


MODELS = ("flow-level", "max-min")
SPEC = RunSpec(
    LinkSpec(100.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(4, "lia"), warmup_s=0.0, seconds=1.0
)
LINK = sorted(fields_of(SPEC.link, "link."))
STACK = sorted(fields_of(SPEC.stack, "stack."))
FLAGS = {field.path: field.flag for field in SPEC_FIELDS}
MESSAGES_WITHOUT_FLAG = {"link.loss"}
"""A message that is older than this test."""


def with_field(path: str, **fields: Any) -> RunSpec:
    return dataclasses.replace(SPEC, **fields).changed({path: other(path)})


def open_vswitch(spec: RunSpec) -> None:
    """Check as the engine does, without a look at the machine."""
    ovs.check(spec, spec.network())
    kernel_hosts.check_stack(spec)


def check_refusal(refused: pytest.ExceptionInfo[UsageError], path: str, instead: str) -> None:
    """The message is one line that names the option and what to choose instead."""
    message = str(refused.value)
    assert "\n" not in message and instead in message
    name = path.partition(".")[2]
    option = f"{name}=" if path.startswith("stack.") else FLAGS[path]
    assert option in message or path in MESSAGES_WITHOUT_FLAG, message


@pytest.mark.parametrize("path", LINK)
def test_open_vswitch_honours_or_refuses_each_field_of_a_link(path: str) -> None:
    spec = with_field(path, dataplane="ovs")
    if path.partition(".")[2] in ovs.HONOURED:
        open_vswitch(spec)
        return
    with pytest.raises(UsageError) as refused:
        open_vswitch(spec)
    check_refusal(refused, path, "choose --dataplane fabric")


@pytest.mark.parametrize("path", sorted({*STACK} - {f"stack.{name}" for name in kernel_hosts.FOLLOWED}))
def test_open_vswitch_refuses_stacks_that_no_kernel_has(path: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_vswitch(with_field(path, dataplane="ovs"))
    check_refusal(refused, path, "choose --engine simulator")


def test_open_vswitch_refuses_a_limit_in_bytes_that_a_delay_would_lift() -> None:
    link = LinkSpec(100.0, delay_us=50.0, queue_bytes=150_000)
    with pytest.raises(UsageError, match=r"--queue-bytes, --delay.*choose --dataplane fabric"):
        open_vswitch(dataclasses.replace(SPEC, link=link, dataplane="ovs"))


@pytest.mark.parametrize("engine", MODELS)
@pytest.mark.parametrize("path", [*LINK, *STACK])
def test_flow_level_honours_or_refuses_each_field(engine: str, path: str) -> None:
    part, _, name = path.partition(".")
    spec = with_field(path, engine=engine)
    if name in {"link": flow_level.OF_LINKS, "stack": flow_level.OF_STACKS}[part]:
        make(engine).check(spec)
        return
    with pytest.raises(UsageError) as refused:
        make(engine).check(spec)
    instead = "choose --engine mininet" if path == "link.host_queue" else "choose --engine simulator"
    check_refusal(refused, path, instead)


@pytest.mark.parametrize(
    ("part", "usual", "words"),
    [
        ("link", LinkSpec(100.0), r"link\.processing_us=50"),
        ("stack", StackSpec(), "--stack processing_us=50"),
    ],
)
def test_a_field_that_is_added_later_is_refused(part: str, usual: LinkSpec | StackSpec, words: str) -> None:
    later = dataclasses.make_dataclass(
        "Later", [("processing_us", float, 0.0)], bases=(type(usual),), frozen=True
    )
    values = {field.name: getattr(usual, field.name) for field in dataclasses.fields(usual)}
    at_its_default = dataclasses.replace(SPEC, **{part: later(**values)})
    given = dataclasses.replace(SPEC, **{part: later(**values, processing_us=50.0)})
    tree = topos.build("fat_tree", {"k": 4})
    flow_level.check_steady(at_its_default, tree, ())
    with pytest.raises(UsageError, match=f"does not support {words}: leave it out"):
        flow_level.check_steady(given, tree, ())
    if part == "link":
        ovs.check(dataclasses.replace(at_its_default, dataplane="ovs"), tree)
        with pytest.raises(UsageError, match=f"{words} is not available with Open vSwitch"):
            ovs.check(dataclasses.replace(given, dataplane="ovs"), tree)


def test_loss_of_one_link_is_refused_as_that_of_all_is() -> None:
    tree = topos.build("fat_tree", {"k": 4})
    one = with_first_link(tree, loss=0.2)
    flow_level.check_steady(SPEC, tree, ())
    with pytest.raises(UsageError, match="random loss"):
        flow_level.check_steady(SPEC, one, ())
    with pytest.raises(UsageError, match="loss or queue of one link"):
        ovs.check(SPEC, one)


RANKED_SPEC = RunSpec(
    LinkSpec(10.0, discipline="pfabric"), transport=TransportSpec(1, "mintcp"), traffic="native"
)


def stacked(**fields: object) -> RunSpec:
    return dataclasses.replace(RANKED_SPEC, stack=StackSpec(**fields))  # type: ignore[arg-type]


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
def test_fields_of_a_stack_that_hosts_lack_are_refused_by_name(spec: RunSpec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_stack(spec)


def test_segments_without_timestamps_carry_twelve_bytes_more() -> None:
    assert (on_the_wire(RANKED_SPEC).payload_bytes, on_the_wire(RANKED_SPEC).header_bytes) == (1460, 54)
    reno = dataclasses.replace(RANKED_SPEC, transport=TransportSpec(1, "reno"))
    assert on_the_wire(reno) == StackSpec()
    assert not sysctls("reno")
