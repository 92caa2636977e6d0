"""What to call transports where several stand side by side: plain TCP, PacketScatter, MPTCP by its congestion
control. Pure.

PacketScatter is plain TCP over the routing policy `scatter` (Raiciu et al., SIGCOMM 2011). MPTCP over `reno`
is the paper's "uncoupled TCP".
"""

from __future__ import annotations

from model.congestion import BASELINE, in_force

TCP, SCATTER = "tcp", "scatter"
"""Names of algorithms beside those of congestion controls; the second is the routing policy's too."""
USUAL_ROUTING = "hashed"
TITLES = {
    TCP: "TCP",
    SCATTER: "PacketScatter",
    "reno": "uncoupled (reno)",
    "cubic": "CUBIC",
    "bbr": "BBR",
    "dctcp": "DCTCP",
    "ewtcp": "EWTCP",
    "coupled": "fully coupled",
    "lia": "LIA",
    "olia": "OLIA",
    "balia": "BALIA",
}
"""For legends and tables, in the order they stand in; another kernel's algorithm keeps its name."""

COMPARED = (TCP, SCATTER, "reno", "ewtcp", "lia", "olia", "balia")
"""The paper's baselines and the coupled algorithms there are, side by side in one chart."""


def algorithm(cc: str, subflows: int, routing: str = USUAL_ROUTING) -> str:
    """What a flow with these is an example of: `tcp`, `scatter`, or a congestion control's name."""
    running = in_force(cc, subflows)
    if subflows > 1 or running != BASELINE:
        return running
    return SCATTER if routing == SCATTER else TCP


def title(name: str) -> str:
    """`TCP`, `PacketScatter`, `uncoupled (reno)`, `LIA`."""
    return TITLES.get(name, name)


def rank(name: str) -> int:
    """Where an algorithm stands among others: in the order of `TITLES`, unknown ones last."""
    return list(TITLES).index(name) if name in TITLES else len(TITLES)


def transport(cc: str, subflows: int, routing: str = USUAL_ROUTING) -> str:
    """`TCP`, `PacketScatter`, `TCP DCTCP`, `MPTCP 8 LIA`, `MPTCP 8 LIA, ecmp routing`."""
    name = algorithm(cc, subflows, routing)
    if name in {TCP, SCATTER}:
        told = title(name)
    else:
        told = f"{'TCP' if subflows == 1 else f'MPTCP {subflows}'} {title(name)}"
    return told if name == SCATTER or routing == USUAL_ROUTING else f"{told}, {routing} routing"
