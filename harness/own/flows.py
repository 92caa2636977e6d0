"""The flows that a function of a user's file returns, checked, so that an error names the flow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Sequence

from common.errors import UsageError
from harness.own.guard import guarded
from workloads.flow import Flow

Flows = Callable[[Sequence[str], int], Iterable[Flow]]


def usable_flows(what: str, flows: Flows, hosts: Sequence[str], seed: int) -> list[Flow]:
    """Call the function; return its flows. Raises UsageError that begins with `what`."""

    def drawn() -> list[object]:
        found = flows(hosts, seed)
        if found is None:
            raise UsageError(f"{what}: the function returns nothing; let it return a list of Flow(src, dst)")
        return list(found)

    listed = guarded(what, drawn, written_in=flows)()
    if not listed:
        raise UsageError(f"{what}: the function returns an empty list; a point needs a flow")
    known = frozenset(hosts)
    return [_usable(f"{what}: flow {number}", flow, known) for number, flow in enumerate(listed, 1)]


def _usable(what: str, flow: object, hosts: Collection[str]) -> Flow:
    if not isinstance(flow, Flow):
        raise UsageError(f"{what} is a {type(flow).__name__}; write Flow(src, dst)")
    what = f"{what}, from {flow.src} to {flow.dst}"
    _check_ends(what, flow, hosts)
    try:
        size, start = int(flow.size_bytes), float(flow.start_s)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{what}: size_bytes and start_s must be numbers") from None
    if size != flow.size_bytes or size < 0:
        raise UsageError(f"{what}: size_bytes must be a whole number from 0, not {flow.size_bytes}")
    if not 0 <= start < math.inf:
        raise UsageError(f"{what}: start_s must be a number from 0, not {flow.start_s}")
    return dataclasses.replace(flow, size_bytes=size, start_s=start)


def _check_ends(what: str, flow: Flow, hosts: Collection[str]) -> None:
    for end in (flow.src, flow.dst):
        if end not in hosts:
            raise UsageError(f"{what}: the network has no host {end}; its hosts are {_few(hosts)}")
    if flow.src == flow.dst:
        raise UsageError(f"{what}: a host cannot send to itself")


def _few(hosts: Collection[str]) -> str:
    names = sorted(hosts)
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
