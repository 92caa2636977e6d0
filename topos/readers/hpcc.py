"""`topology.txt` of HPCC's simulator (alibaba-edu/High-Precision-Congestion-Control) and its descendants.

The first line has the numbers of nodes, switches and links, the second the numbers of the switches; each
further line is a link: `0 320 100Gbps 1000ns 0.0`, two nodes, rate, delay and share of lost packets. Node 3
is called `n3`. Lines after the last link are not read, as in the simulator.
"""

from __future__ import annotations

from common.errors import UsageError
from topos import from_file
from topos.readers.graph import Part, with_unit

RATES = {"Gbps": 1e3, "Mbps": 1.0, "Kbps": 1e-3, "kbps": 1e-3, "bps": 1e-6}
"""Units of rates, in Mb/s."""
DELAYS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
"""Units of delays, in us."""
_FORM = "0 320 100Gbps 1000ns 0"


def read(what: str, text: str) -> tuple[list[Part], list[Part]]:
    """Return nodes and links. Raises UsageError."""
    lines = [(f"{what}, line {number}", line.split()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(where, cells) for where, cells in lines if cells]
    where, head = lines[0] if lines else (f"{what}, line 1", [])
    if len(head) != 3 or not all(cell.isdecimal() for cell in head):
        raise UsageError(f"{where}: it does not begin with the numbers of nodes, switches and links")
    count, switch_count, link_count = map(int, head)
    if count > from_file.MAX_NODES:
        raise UsageError(f"{where}: {count} nodes; give {from_file.MAX_NODES} or fewer")
    after = 2 if switch_count else 1
    switches = {cell for _, cells in lines[1:after] for cell in cells}
    if len(switches) != switch_count:
        raise UsageError(
            f"{what}: its second line names {len(switches)} switches, and the first says {switch_count}"
        )
    if len(lines) - after < link_count:
        raise UsageError(f"{what}: it has {len(lines) - after} links, and the first line says {link_count}")
    nodes: list[Part] = [
        (where, {"id": number, "kind": "switch" if str(number) in switches else "host"})
        for number in range(count)
    ]
    return nodes, [(where, _link(where, cells)) for where, cells in lines[after:][:link_count]]


def _link(where: str, cells: list[str]) -> dict[str, float]:
    if len(cells) not in (4, 5) or not (cells[0].isdecimal() and cells[1].isdecimal()):
        raise UsageError(f"{where}: '{' '.join(cells)[:40]}' is not a link, as in: {_FORM}")
    return {
        "source": int(cells[0]),
        "target": int(cells[1]),
        "rate_mbps": with_unit(where, "rate", cells[2], RATES),
        "delay_us": with_unit(where, "delay", cells[3], DELAYS),
        "loss_pct": 100 * with_unit(where, "share of lost packets", cells[4] if cells[4:] else "0", {"": 1}),
    }
