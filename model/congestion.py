"""Congestion controls by name: title, appearance in charts, and which hosts run each. Pure.

A new one is one record here and its algorithm: two functions in fabric/simulation/congestion/ and, unless the
kernel has it, a BPF source in engines/emulation/congestion/bpf/ and its twin in C for the guests' kernel, in
engines/linux/kernel/congestion/ (docs/congestion.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ccp.names import PREFIX, SHIPPED, is_agents

BASELINE = "reno"
"""The algorithm of plain TCP beside a coupled one, which equals it with a single subflow (RFC 6356)."""
COUPLED_DEFAULT = "lia"
_OURS = "rf_"
"""Prefix of our algorithms' names in the kernel, which distinguishes them from the kernel's modules."""
DATAPATH = "ccp"
"""Name of the datapath under an agent, in the simulator's core and, with our prefix, in the kernel."""
UNKNOWN_LOOK = ("#5f5f5f", "h")
"""Colour and marker of an algorithm without a record."""


@dataclass(frozen=True)
class CongestionControl:
    """A congestion control.

    `title` says what it is in lists; `label` names it in legends and tables, `colour` and `marker` draw it in
    every chart. `bpf`: this project loads it into the kernel for the duration of a run. `agent`: a program
    in Python sets the window (docs/ccp.md). `coupled`: the subflows of a connection share state. `ecn`: it
    reacts to marks (RFC 3168), which both ends must negotiate. `emulated` and `simulated`: which hosts can
    run it.
    """

    title: str
    label: str
    colour: str = UNKNOWN_LOOK[0]
    marker: str = UNKNOWN_LOOK[1]
    bpf: bool = False
    agent: bool = False
    coupled: bool = False
    ecn: bool = False
    emulated: bool = True
    simulated: bool = True


CONGESTION_CONTROLS: dict[str, CongestionControl] = {
    "reno": CongestionControl(
        "NewReno (RFC 5681), every subflow by itself", "uncoupled (reno)", "#56B4E9", "o"
    ),
    "cubic": CongestionControl(
        "CUBIC (RFC 9438), every subflow by itself", "CUBIC", "#999933", "<"
    ),
    "bbr": CongestionControl("BBR, every subflow by itself", "BBR", "#6b6b6b", ">", simulated=False),
    "dctcp": CongestionControl(
        "DCTCP (RFC 8257), every subflow by itself", "DCTCP", "#882255", "*", bpf=True, ecn=True
    ),
    "srpt": CongestionControl(
        "Ideal: shortest remaining size first over the whole fabric (pFabric, SIGCOMM 2013)", "Ideal",
        "#111111", "x", emulated=False, simulated=False,
    ),
    "mintcp": CongestionControl(
        "minTCP (pFabric, SIGCOMM 2013): reno that reacts to timeouts alone", "minTCP", "#5D3A9B", "p",
        bpf=True,
    ),
    "linerate": CongestionControl(
        "LineRate (pFabric, SIGCOMM 2013): always one bandwidth-delay product in the network", "LineRate",
        "#CC3377", "H", emulated=False,
    ),
    "ewtcp": CongestionControl(
        "EWTCP, each of n subflows weighted 1/n^2", "EWTCP", "#CC79A7", "v", bpf=True, coupled=True
    ),
    "coupled": CongestionControl(
        "fully coupled (Wischik et al., NSDI 2011), in the simulator alone", "fully coupled", "#44AA99", "d",
        coupled=True, emulated=False,
    ),
    "lia": CongestionControl(
        "LIA, linked increases (RFC 6356)", "LIA", "#0072B2", "^", bpf=True, coupled=True
    ),
    "olia": CongestionControl(
        "OLIA (Khalili et al., CoNEXT 2012)", "OLIA", "#009E73", "P", bpf=True, coupled=True
    ),
    "balia": CongestionControl(
        "BALIA (Peng et al., ToN 2016)", "BALIA", "#332288", "X", bpf=True, coupled=True
    ),
    **{
        PREFIX + name: CongestionControl(SHIPPED[name], f"CCP {label}", colour, marker, agent=True)
        for name, label, colour, marker in (
            ("reno", "Reno", "#1F5FA8", "8"), ("cubic", "CUBIC", "#B8860B", "1"),
            ("bbr", "BBR", "#3D3D3D", "2"), ("copa", "Copa", "#117733", "3"),
            ("vegas", "Vegas", "#DD7733", "4"), ("swift", "Swift", "#2A9D8F", "$S$"),
            ("timely", "TIMELY", "#8C564B", "$T$"), ("hpcc", "HPCC", "#5F7A1F", "$H$"),
            ("aggregate", "aggregate", "#AA3377", "+"),
        )
    },
}  # fmt: skip
"""In the order in which charts and tables show them."""


def in_force(cc: str, subflows: int) -> str:
    """Return the algorithm that a flow of `subflows` runs under `cc`: a single subflow is not coupled."""
    return BASELINE if subflows == 1 and _known(cc).coupled else cc


def kernel_name(cc: str) -> str:
    """Return the name of `cc` in the kernel."""
    if is_agents(cc) or cc == DATAPATH:
        return _OURS + DATAPATH
    return _OURS + cc if _known(cc).bpf else cc


def name_of(kernel: str) -> str:
    """Return the inverse of `kernel_name`."""
    return kernel.removeprefix(_OURS)


def core_name(cc: str) -> str:
    """Return the name of `cc` in the simulator's core."""
    return DATAPATH if is_agents(cc) else cc


def is_known(cc: str) -> bool:
    """Return whether `cc` has a record or is a user's own algorithm."""
    return cc in CONGESTION_CONTROLS or is_agents(cc)


def described(cc: str, subflows: Iterable[int]) -> str:
    """Describe `cc` for points with these subflow counts: `reno`, `reno, uncoupled` or `lia, coupled (TCP:
    reno)`."""
    counts = set(subflows)
    if counts <= {1}:
        return in_force(cc, 1)
    words = f"{cc}, {'coupled' if _known(cc).coupled else 'uncoupled'}"
    return f"{words} (TCP: {BASELINE})" if 1 in counts and in_force(cc, 1) != cc else words


def in_guests() -> tuple[str, ...]:
    """Return our algorithms that the kernel of the engine `linux` is built with, and the agents' datapath."""
    return (*(name for name, cc in CONGESTION_CONTROLS.items() if cc.bpf), DATAPATH)


def _known(cc: str) -> CongestionControl:
    """Return the record of `cc`. A kernel may have others; nothing is known of them."""
    return CONGESTION_CONTROLS.get(cc) or CongestionControl(cc, cc, agent=is_agents(cc))
