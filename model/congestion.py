"""Congestion controls by name: what each is called, how charts draw it, which hosts run it. Pure.

A new one is one record here, and its algorithm: a BPF source in engines/emulation/congestion/ (unless the
kernel has it), and a class in fabric/simulation/congestion/.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BASELINE = "reno"
"""What plain TCP runs beside a coupled algorithm, and what that one is with a single subflow (RFC 6356)."""
COUPLED_DEFAULT = "lia"
_OURS = "rf_"
"""Prefix of our algorithms' names in the kernel, so that none is mistaken for a module of the kernel's."""
UNKNOWN_LOOK = ("#5f5f5f", "h")
"""Colour and marker of an algorithm without a record."""


@dataclass(frozen=True)
class CongestionControl:
    """A congestion control.

    `title` says what it is in lists; `label` names it in legends and tables, `colour` and `marker` draw it in
    every chart. `bpf`: this project loads it into the kernel for the duration of a run. `coupled`: the
    subflows of a connection share state. `ecn`: it reacts to marks (RFC 3168), which both ends must
    negotiate. `emulated` and `simulated`: which hosts can run it.
    """

    title: str
    label: str
    colour: str = UNKNOWN_LOOK[0]
    marker: str = UNKNOWN_LOOK[1]
    bpf: bool = False
    coupled: bool = False
    ecn: bool = False
    emulated: bool = True
    simulated: bool = True


CONGESTION_CONTROLS: dict[str, CongestionControl] = {
    "reno": CongestionControl(
        "NewReno (RFC 5681), every subflow by itself", "uncoupled (reno)", "#56B4E9", "o"
    ),
    "cubic": CongestionControl(
        "CUBIC (RFC 9438), every subflow by itself", "CUBIC", "#999933", "<", simulated=False
    ),
    "bbr": CongestionControl("BBR, every subflow by itself", "BBR", "#6b6b6b", ">", simulated=False),
    "dctcp": CongestionControl(
        "DCTCP (RFC 8257), every subflow by itself", "DCTCP", "#882255", "*", bpf=True, ecn=True
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
}  # fmt: skip
"""In the order in which charts and tables show them."""


def in_force(cc: str, subflows: int) -> str:
    """Return the algorithm that a flow of `subflows` runs under `cc`: a single subflow is not coupled."""
    return BASELINE if subflows == 1 and _known(cc).coupled else cc


def kernel_name(cc: str) -> str:
    """Return the name of `cc` in the kernel."""
    return _OURS + cc if _known(cc).bpf else cc


def name_of(kernel: str) -> str:
    """Return the inverse of `kernel_name`."""
    return kernel.removeprefix(_OURS)


def described(cc: str, subflows: Iterable[int]) -> str:
    """Describe `cc` for points with these subflow counts: `reno`, `reno, uncoupled` or `lia, coupled (TCP:
    reno)`."""
    counts = set(subflows)
    if counts <= {1}:
        return in_force(cc, 1)
    words = f"{cc}, {'coupled' if _known(cc).coupled else 'uncoupled'}"
    return f"{words} (TCP: {BASELINE})" if 1 in counts and in_force(cc, 1) != cc else words


def _known(cc: str) -> CongestionControl:
    """Return the record of `cc`. A kernel may have others; nothing is known of them."""
    return CONGESTION_CONTROLS.get(cc, CongestionControl(cc, cc))
