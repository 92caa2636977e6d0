"""Routing policies: the paths between two switches, and which of them a packet takes.

Paths are the shortest ones, in the form of next hops (`EcmpTables`), or those that a policy lists. Most
policies choose per flow, as a function of its 5-tuple and a seed. Tests compare the C++ core's forwarding
with `path`, and a figure about collisions is computed from it; the data path does not call it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from common.errors import UsageError
from common.text import did_you_mean
from controllers.groups import EcmpTables, Group, PathLists, WeightedPath, ecmp_groups, weighted
from controllers.hashing import FiveTuple, flow_hash, mix, switch_seed
from fabric._core import Graph
from topos import Parameter, bcube
from topos.topology import Nic, Topology

FIRST_LEG, SECOND_LEG = 0x56414C31, 0x56414C32
"""XORed with the seed for the two halves of a path through an intermediate switch."""

Walk = Callable[[EcmpTables, int, int, int, int], tuple[int, ...]]
"""(tables, seed, flow hash, first forwarding node, destination's position in attach) -> forwarding nodes of
the path."""


def hashed(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """Choose the whole path by one hash, as RipL does: number `mix(h, seed) mod count` of the paths.

    Shortest paths are in lexicographic order. The number is decoded hop by hop: a next hop with n paths
    beyond it stands for n consecutive numbers, so every switch needs only its own group and the remaining
    number.
    """
    return path_of_rank(tables, mix(h, seed), switch, target)


def path_of_rank(tables: EcmpTables, rank: int, switch: int, target: int) -> tuple[int, ...]:
    """Return path number `rank` modulo their count; shortest ones are in lexicographic order, and a listed
    path has as many numbers as its weight. Empty if none."""
    count = tables.path_count(switch, target)
    if not count:
        return ()
    rank %= count
    if tables.lists is not None and switch != tables.attach[target]:
        return _of_rank(tables.lists.between(switch, tables.attach[target]), rank)
    walked = [switch]
    while group := tables.group(walked[-1], target):
        node, rank = _unrank(group, rank)
        walked.append(node)
    return tuple(walked)


def ecmp(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """Choose a next hop at every switch, as real switches do: member `mix(h, its own seed) mod size`."""
    walked = [switch]
    while group := tables.group(walked[-1], target):
        walked.append(group[mix(h, switch_seed(seed, walked[-1])) % len(group)].node)
    return tuple(walked)


def wcmp(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """Choose a next hop at every switch as `ecmp` does, in proportion to its weight (`weighted`)."""
    walked = [switch]
    while group := tables.group(walked[-1], target):
        chosen = mix(h, switch_seed(seed, walked[-1])) % sum(hop.paths for hop in group)
        walked.append(_unrank(group, chosen)[0])
    return tuple(walked)


def valiant(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """Go through a switch with hosts, chosen by hash (Valiant and Brebner, STOC 1981).

    The path has number `mix(h, seed ^ FIRST_LEG)` to it and `mix(h, seed ^ SECOND_LEG)` from it. If it is not
    joined to both ends (the other plane of a dual-homed tree), the next switch that is joined is used.
    """
    count = len(tables.attach)
    chosen = mix(h, seed) % count
    for by in (*range(chosen, count), *range(chosen)):
        there = path_of_rank(tables, mix(h, seed ^ FIRST_LEG), switch, by)
        onward = path_of_rank(tables, mix(h, seed ^ SECOND_LEG), tables.attach[by], target)
        if there and onward:
            return (*there, *onward[1:])
    return ()


def spanning_tree(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """Choose the first of the shortest paths for every flow, as RipL's `st`: in a FatTree one tree below the
    first core switch carries everything."""
    del seed, h
    return path_of_rank(tables, 0, switch, target)


def digits(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """Correct the digits of BCube's addresses from the highest to the lowest (BCubeRouting of Guo et al.,
    SIGCOMM 2009): one path between two servers, the last in lexicographic order."""
    del seed, h
    return path_of_rank(tables, tables.path_count(switch, target) - 1, switch, target)


MAX_LINKS = 10
"""The longest path of a packet (fabric/core/packet.hpp)."""
MAX_LISTED = 4_000_000
"""Most paths in all lists of a network, which take a minute to find."""


def k_shortest(topology: Topology, k: int) -> Callable[[int, int], Sequence[WeightedPath]]:
    """Return the function that returns the `k` shortest loopless paths between two nodes (Yen, Management
    Science 1971), those of one length in lexicographic order.

    Jellyfish uses 8 (Singla et al., NSDI 2012, section 5). There are fewer if a packet could not take more.
    """
    forwarders = set(topology.forwarders)
    near = topology.adjacency
    graph = Graph([[n for n in near[node] if n in forwarders] if node in forwarders else []
                   for node in range(len(topology.nodes))])  # fmt: skip
    most_links = MAX_LINKS if topology.hosts_forward else MAX_LINKS - 2
    return lambda src, dst: [
        WeightedPath(1, tuple(nodes)) for nodes in graph.k_shortest(src, dst, k, most_links)
    ]


@dataclass(frozen=True)
class Policy:
    """A routing policy: the function that returns a flow's path, None if packets of one flow take different
    paths, and the parameters that follow its name, `name:value:value`. They are whole numbers. If a policy
    `reorders`, packets of a flow overtake one another all the time.

    If `paths` is given, it makes of a topology and the parameters the function that lists the paths from one
    node to another; else paths are the shortest ones."""

    walk: Walk | None
    parameters: tuple[Parameter, ...] = ()
    paths: Callable[..., Callable[[int, int], Sequence[WeightedPath]]] | None = None
    reorders: bool = False
    about: str = ""

    def form(self, name: str) -> str:
        """Return how the policy is written: `digits`, `ksp:K`."""
        return ":".join([name, *(parameter.name.upper() for parameter in self.parameters)])


_GAP_US = Parameter("gap_us", 1, 1_000_000, default=500)
"""After it a flow's next packet begins a flowlet. 500 us on links of 10 Gb/s are CONGA's (SIGCOMM 2014,
section 3.6), and what the simulator of Hermes's authors (snowzjx/ns3-load-balance) takes for LetFlow, too."""
_TAU_US = Parameter("tau_us", 1, 1_000_000, default=160)
"""Time constant of CONGA's rate estimators (section 3.6: 160 us on links of 10 and 40 Gb/s)."""
_DRILL = (Parameter("d", 1, 1000, default=2), Parameter("m", 0, 1000, default=1))
"""DRILL (SIGCOMM 2017, section 3): next hops looked at, at random and because they were best before; two
and one are enough."""
_CELL_KB = Parameter("cell_kb", 1, 1_000_000, default=64)
"""Size of Presto's cells (SIGCOMM 2015, section 3.1), in 1024 bytes of frames."""

CONGA, DIGITS, WCMP = "conga", "digits", "wcmp"
POLICIES: dict[str, Policy] = {
    "hashed": Policy(hashed, about="one hash of a flow picks one of the shortest paths"),
    "ecmp": Policy(ecmp, about="every switch hashes flows to next hops"),
    WCMP: Policy(wcmp, about="ecmp in proportion to what a next hop can carry to the destination"),
    "ksp": Policy(
        hashed,
        (Parameter("k", 1, 64, default=8),),
        k_shortest,
        about="one hash of a flow picks one of the K shortest paths",
    ),
    # PacketScatter in Raiciu et al., SIGCOMM 2011: a random path for every packet
    "scatter": Policy(None, reorders=True, about="every packet takes a random shortest path"),
    "valiant": Policy(valiant, about="by way of a random switch that has hosts"),
    "spanning-tree": Policy(spanning_tree, about="the first path, for all flows"),
    DIGITS: Policy(digits, about="BCube's own routing, digit by digit"),
    "letflow": Policy(None, (_GAP_US,), about="every flowlet takes a random next hop"),
    "drill": Policy(
        None,
        _DRILL,
        reorders=True,
        about="every packet takes the shortest of D random queues and M remembered ones",
    ),
    CONGA: Policy(
        None, (_GAP_US, _TAU_US), about="every flowlet takes the least congested path of a leaf-spine"
    ),
    "presto": Policy(None, (_CELL_KB,), reorders=True, about="every cell of so many kB takes the next path"),
}


IN_SWITCHES = frozenset({"letflow", "drill", CONGA})
"""Policies by which every switch chooses the next hop of a packet from its own state: flowlets, queues,
congestion (fabric/core/balancing)."""


def parse(text: str) -> tuple[str, dict[str, int]]:
    """Return the name of a policy and all its parameters: `ksp`, `ksp:8` or `ksp:k=8` is ("ksp", {"k": 8}).

    Raises UsageError for an unknown policy, and for a parameter that it does not have or out of range.
    """
    name, *given = (part.strip() for part in text.split(":"))
    if name not in POLICIES:
        known = ", ".join(policy.form(each) for each, policy in POLICIES.items())
        raise UsageError(f"--routing {text}: unknown; {did_you_mean(name, POLICIES)}choose from: {known}")
    parameters = POLICIES[name].parameters
    values: dict[str, int | None] = {parameter.name: parameter.default for parameter in parameters}
    if len(given) > len(parameters):
        takes = f"only {POLICIES[name].form(name)}" if parameters else "no parameter"
        raise UsageError(f"--routing {text}: {name} takes {takes}")
    for parameter, part in zip(parameters, given, strict=False):
        key, _, value = part.rpartition("=")
        if (key or parameter.name) not in values:
            raise UsageError(f"--routing {text}: {name} has no {key}; write {POLICIES[name].form(name)}")
        values[key or parameter.name] = int(value) if value.isdecimal() and len(value) < _DIGITS else -1
    for parameter in parameters:
        if not parameter.admits(values[parameter.name]):
            whole = parameter.accepts.replace("a number", "a whole number")
            raise UsageError(f"--routing {text}: {parameter.name} must be {whole}")
    return name, {key: value for key, value in values.items() if value is not None}


_DIGITS = 10
"""A number of so many digits is out of every parameter's range."""


def canonical(text: str) -> str:
    """Return the one text that stands for a policy with these parameters. Raises UsageError as `parse`."""
    name, values = parse(text)
    return ":".join([name, *map(str, values.values())])


def tables_of(topology: Topology, policy: str) -> EcmpTables:
    """Return the paths of a policy with its parameters, `ksp:8`. Raises UsageError as `parse`."""
    name, values = parse(policy)
    tables, find = ecmp_groups(topology), POLICIES[name].paths
    if name == WCMP:
        return weighted(topology, tables)
    return tables if find is None else replace(tables, lists=PathLists(find(topology, **values)))


def lists_paths(policy: str) -> bool:
    """Return whether a policy lists its paths; else they are the shortest ones."""
    return POLICIES[parse(policy)[0]].paths is not None


def check_routing(policy: str, topology: Topology) -> None:
    """Raise UsageError for a policy that does not suit the topology."""
    name, values = parse(policy)
    if POLICIES[name].paths:
        attachments = len({topology.attachment(nic) for nic in topology.nics})
        if (listed := attachments**2 * values.get("k", 1)) > MAX_LISTED:
            raise UsageError(
                f"routing '{policy}' lists up to {listed} paths, between each two of {attachments} switches "
                f"with hosts, and {MAX_LISTED} is the limit: choose a smaller network, or another --routing"
            )
    if name in IN_SWITCHES and topology.hosts_forward:
        raise UsageError(
            f"routing '{policy}' is for switches that keep state, and topology {topology.kind} forwards in "
            "hosts: choose another --routing"
        )
    if name == CONGA and not _two_tiers(topology):
        raise UsageError(
            f"routing '{policy}' needs two tiers, every leaf linked to every spine, and topology "
            f"{topology.kind} has others: choose --topology ls,4, or another --routing"
        )
    if policy == DIGITS and topology.kind != bcube.KIND:
        raise UsageError(
            f"routing '{DIGITS}' corrects the digits of BCube's addresses, and topology {topology.kind} has "
            "none: choose another --routing"
        )
    if policy == "valiant" and topology.kind == bcube.KIND and topology.number("k") > 1:
        raise UsageError(
            f"routing 'valiant' on BCube with k={topology.params['k']}: its paths exceed 10 links, the "
            "limit of a packet; choose k=1, or another --routing"
        )


def _two_tiers(topology: Topology) -> bool:
    """Return whether every path between switches that have hosts leads over one switch that has none."""
    leaves = {topology.attachment(nic) for nic in topology.nics}
    switches = set(topology.forwarders)
    spines = {leaf: {node for node in topology.adjacency[leaf] if node in switches} for leaf in leaves}
    joined = all(spines[a] & spines[b] for a, b in combinations(sorted(leaves), 2))
    return joined and not any(leaves & near for near in spines.values())


def per_packet(policy: str) -> bool:
    """Return whether packets of one flow take different paths."""
    return POLICIES[parse(policy)[0]].walk is None


def reorders(policy: str) -> bool:
    """Return whether packets of one flow overtake one another all the time."""
    return POLICIES[parse(policy)[0]].reorders


def path(
    topology: Topology, tables: EcmpTables, policy: str, seed: int, five_tuple: FiveTuple
) -> tuple[int, ...]:
    """Return the node indices from source host to destination host that packets of `five_tuple` pass.

    Raises UsageError for an unknown policy, for a policy that chooses per packet, and as `ends` does.
    """
    check_routing(policy, topology)
    walk = POLICIES[parse(policy)[0]].walk
    if walk is None:
        raise UsageError(f"routing policy '{policy}' chooses a path per packet: a flow has no single path")
    src, dst, target = ends(topology, tables, five_tuple)
    walked = walk(tables, seed, flow_hash(five_tuple), topology.attachment(src), target)
    return walked if topology.hosts_forward else (src.host, *walked, dst.host)


def ends(topology: Topology, tables: EcmpTables, five_tuple: FiveTuple) -> tuple[Nic, Nic, int]:
    """Return the NICs of a flow's source and destination, and the destination's position in `tables.attach`.

    A host with several NICs uses the one with the tuple's address. Raises UsageError for an unknown address,
    a flow from a host to itself, and NICs without a path (in a dual-homed FatTree, the first NIC of one host
    and the second of another).
    """
    src, dst = topology.nic_by_ip(five_tuple.src), topology.nic_by_ip(five_tuple.dst)
    if src.host == dst.host:
        raise UsageError(f"{five_tuple.src} and {five_tuple.dst} are the same host: choose two hosts")
    target = tables.attach.index(topology.attachment(dst))
    if not tables.path_count(topology.attachment(src), target):
        raise UsageError(f"no path joins {src.name} ({src.ip}) and {dst.name} ({dst.ip}): use another NIC")
    return src, dst, target


def _of_rank(paths: Sequence[WeightedPath], rank: int) -> tuple[int, ...]:
    for path in paths:
        if rank < path.weight:
            return path.nodes
        rank -= path.weight
    raise ValueError(f"choosing a path: rank beyond the weights of {len(paths)} paths")


def _unrank(group: Group, rank: int) -> tuple[int, int]:
    """Return the next hop whose block of path numbers contains `rank`, and the number within that block."""
    for node, paths in group:
        if rank < paths:
            return node, rank
        rank -= paths
    raise ValueError(f"choosing a path: rank beyond the {sum(hop.paths for hop in group)} paths of the group")


def parallel_path(topology: Topology, src: int, dst: int, first: int, detour: int = 0) -> tuple[int, ...]:
    """Return the node indices of path number `first` (leaving by NIC `first`) of a BCube from server `src` to
    `dst`; only the ends are common to the paths of two servers.

    Source: BuildPathSet of Guo et al., SIGCOMM 2009, section 4.2. If source and destination differ in digit
    `first`, the path corrects this digit, then the one below it, and so on cyclically. If they agree in it,
    the path goes to a neighbour that differs in it, corrects the other digits, and corrects it last. A
    detour begins with neighbour `detour` modulo n-1 of the n-1 possible ones. A path has at most 2 (k+2)
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
