"""The parallel paths of BCube: one per NIC of the source; only their ends are common nodes.

BuildPathSet of Guo et al., SIGCOMM 2009, section 4.2: a server-centric network routes at the source. Path i
leaves by NIC i. If source and destination differ in digit i, the path corrects digit i, then i-1, and so on
cyclically. If they agree in digit i, it goes to a neighbour that differs in it, corrects the other digits,
and corrects digit i last.
"""

from __future__ import annotations

from topos.topology import Topology


def parallel_path(topology: Topology, src: int, dst: int, first: int, detour: int = 0) -> tuple[int, ...]:
    """Return the node indices of path number `first` (leaving by NIC `first`) from server `src` to `dst`.

    A detour begins with neighbour `detour` modulo n-1 of the n-1 possible ones. A path has at most 2 (k+2)
    links.
    """
    n, levels = topology.number("n"), topology.number("k") + 1
    nodes = [src]
    order = [(first - step) % levels for step in range(levels)]
    if _digit(src, first, n) == _digit(dst, first, n):
        away = (_digit(src, first, n) + 1 + detour % (n - 1)) % n
        _correct(topology, nodes, first, away, n)
        order = [*order[1:], first]
    for level in order:
        _correct(topology, nodes, level, _digit(dst, level, n), n)
    return tuple(nodes)


def _digit(server: int, level: int, n: int) -> int:
    return server // int(n**level) % n


def _correct(topology: Topology, nodes: list[int], level: int, digit: int, n: int) -> None:
    """Extend the path to the server with this digit, through the switch of this level, if it differs."""
    here = nodes[-1]
    there = here + (digit - _digit(here, level, n)) * n**level
    if there != here:
        nodes += [topology.nics_of(here)[level].switch, there]
