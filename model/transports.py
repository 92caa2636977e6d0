"""Transports side by side in charts and tables: plain TCP, PacketScatter, MPTCP by congestion control. Pure.

PacketScatter is plain TCP over the routing policy `scatter` (Raiciu et al., SIGCOMM 2011). MPTCP over `reno`
is the paper's "uncoupled TCP".
"""

from __future__ import annotations

from collections.abc import Mapping

from model.congestion import BASELINE, CONGESTION_CONTROLS, CongestionControl, in_force

TCP, SCATTER = "tcp", "scatter"
"""Names of algorithms beside those of congestion controls; the second is also a routing policy."""
USUAL_ROUTING = "hashed"


TRANSPORTS = {
    "ndp": CongestionControl("NDP (Handley et al., SIGCOMM 2017)", "NDP", "#0B7A75", "$N$", emulated=False),
}
"""Transports other than TCP, by their names in the core: title, label, colour and marker."""

ALGORITHMS: Mapping[str, CongestionControl] = {
    TCP: CongestionControl("plain TCP", "TCP", "#D55E00", "s"),
    SCATTER: CongestionControl("plain TCP, each packet on its own path", "PacketScatter", "#E69F00", "D"),
    **CONGESTION_CONTROLS,
    **TRANSPORTS,
}
"""In the order in which charts and tables show them."""

COMPARED = (TCP, SCATTER, "reno", "ewtcp", "lia", "olia", "balia")
"""The baselines of the SIGCOMM 2011 paper and the coupled algorithms, side by side in one chart."""


def algorithm(cc: str, subflows: int, routing: str = USUAL_ROUTING) -> str:
    """Return the name of a flow's algorithm: `tcp`, `scatter`, or a congestion control."""
    running = in_force(cc, subflows)
    if subflows > 1 or running != BASELINE:
        return running
    return SCATTER if routing == SCATTER else TCP


def look(name: str) -> CongestionControl:
    """Return how to name and draw an algorithm; one of another kernel keeps its name."""
    return ALGORITHMS.get(name, CongestionControl(name, name))


def title(name: str) -> str:
    """Return `TCP`, `PacketScatter`, `uncoupled (reno)`, `LIA`."""
    return look(name).label


def rank(name: str) -> int:
    """Return the position of an algorithm among others: in the order of `ALGORITHMS`, unknown ones last."""
    return list(ALGORITHMS).index(name) if name in ALGORITHMS else len(ALGORITHMS)


def transport(cc: str, subflows: int, routing: str = USUAL_ROUTING) -> str:
    """Return `TCP`, `PacketScatter`, `TCP DCTCP`, `MPTCP 8 LIA`, `MPTCP 8 LIA, ecmp routing`."""
    name = algorithm(cc, subflows, routing)
    if name in {TCP, SCATTER, *TRANSPORTS}:
        words = title(name)
    else:
        words = f"{'TCP' if subflows == 1 else f'MPTCP {subflows}'} {title(name)}"
    return words if name == SCATTER or routing == USUAL_ROUTING else f"{words}, {routing} routing"
