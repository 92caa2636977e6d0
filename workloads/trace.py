"""A trace: the flows of a user's file or function, as the text that a spec holds.

The text is `start,src,dst,bytes` for each flow, with `;` between flows, so that results need no file to be
read again. 0 bytes means that a flow sends until the run ends. flow_files.py reads files.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from common.errors import UsageError
from common.text import did_you_mean
from workloads.flow import Flow, Traffic

NAME = "trace"
MAX_FLOWS = 200_000
"""A simulation of so many takes 0.9 GB, most of it for the flows as Python objects."""
MAX_BYTES = 10**15


def trace(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, name: str = "", flows: str = ""
) -> tuple[Flow, ...]:
    """Return the flows of the text in the order of their starts, which count from the start of traffic.

    `seed` is not used. Hosts have their names, or numbers: 3 is node n3 of a network whose hosts are called
    so, and the fourth host of any other. Raises UsageError for a host that the network lacks, and for a flow
    that would start after the end of the run; the message has the flow's number in the file.
    """
    del seed
    if not flows:
        raise UsageError(f"workload {NAME}: name a file of flows, e.g. --workload {NAME}:flows.csv")
    known = frozenset(hosts)
    numbers = {host[1:]: host for host in hosts if host[0] == "n" and host[1:].isdecimal()}
    numbers = numbers or {str(number): host for number, host in enumerate(hosts)}
    found = []
    for number, flow in enumerate(_flows(flows), 1):
        ends = [end if end in known else numbers.get(end, "") for end in (flow.src, flow.dst)]
        if "" in ends:
            end = (flow.src, flow.dst)[ends.index("")]
            raise UsageError(f"{name}, flow {number}: the network has no host {end}{_hint(end, hosts)}")
        if ends[0] == ends[1]:
            raise UsageError(f"{name}, flow {number}: {flow.src} and {flow.dst} are the same host")
        if flow.start_s >= traffic.seconds:
            raise UsageError(
                f"{name}, flow {number}: it starts after {flow.start_s:g} s, and the run ends after "
                f"{traffic.seconds:g} s: give --seconds {math.floor(flow.start_s) + 1}"
            )
        found.append(flow if ends == [flow.src, flow.dst] else replace(flow, src=ends[0], dst=ends[1]))
    return tuple(sorted(found, key=lambda flow: flow.start_s))


def _hint(end: str, hosts: Sequence[str]) -> str:
    meant = did_you_mean(end, hosts, end="?")
    return f": {meant}" if meant else f"; its hosts are {hosts[0]} to {hosts[-1]}"


def written(flows: Iterable[Flow]) -> str:
    """Return the text of flows. Raises UsageError for flows that it cannot hold."""
    parts = []
    for number, flow in enumerate(flows, 1):
        if Flow(flow.src, flow.dst, flow.size_bytes, flow.start_s) != flow:
            raise UsageError(
                f"flow {number} from {flow.src}: a trace has start, hosts and size of a flow only"
            )
        parts.append(f"{float(flow.start_s)!r},{flow.src},{flow.dst},{flow.size_bytes}")
    if not 1 <= len(parts) <= MAX_FLOWS:
        raise UsageError(f"a trace has 1 to {MAX_FLOWS} flows, not {len(parts)}")
    return ";".join(parts)


@functools.lru_cache(maxsize=8)
def _flows(text: str) -> tuple[Flow, ...]:
    """Parse the text. Raises UsageError for one that `written` does not write."""
    found = []
    for part in text.split(";"):
        try:
            start, src, dst, size = part.split(",")
            flow = Flow(src, dst, int(size), float(start))
            if not (0 <= flow.size_bytes <= MAX_BYTES and 0 <= flow.start_s < math.inf and src != dst):
                raise ValueError
        except ValueError:
            raise UsageError(f"workload {NAME}: its text is damaged at '{part[:80]}'; run it again") from None
        found.append(flow)
    if len(found) > MAX_FLOWS:
        raise UsageError(f"workload {NAME}: it has more than {MAX_FLOWS} flows")
    return tuple(found)
