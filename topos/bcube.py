"""BCube (Guo et al., SIGCOMM 2009, section 3): servers with several NICs that forward for each other.

BCube(n, k) has n^(k+1) servers with k+1 NICs each, and k+1 levels of n^k switches with n ports. Switches are
not joined to each other. A server's address has k+1 digits in base n, a_k .. a_0. Its NIC i leads to the
level-i switch that joins the n servers whose addresses differ only in digit i.
"""

from __future__ import annotations

from common.errors import UsageError
from topos.topology import Builder, Layer, Topology

KIND = "bcube"
MAX_N = 64
MAX_K = 3
"""A packet in the core passes at most 10 links: a detour in BCube(n, k) changes k + 2 digits, two links
each."""
MAX_SERVERS = 16384
_LAYERS = (Layer.EDGE, Layer.AGG, Layer.CORE, Layer.CORE)


def links(n: int, k: int) -> int:
    """Return the number of links. Raises UsageError above MAX_SERVERS."""
    count: int = n ** (k + 1)
    if count > MAX_SERVERS:
        raise UsageError(
            f"topology {KIND}: n={n}, k={k} has {count} servers, more than {MAX_SERVERS}: choose fewer"
        )
    return count * (k + 1)


def bcube(n: int, k: int) -> Topology:
    """BCube(n, k); n from 2, k from 0 to 3 (checked by `topos.build`).

    Names: server `h21` has digits a_1=2, a_0=1, with two places per digit if n is above 10 (`h0201`). Its
    level-1 switch `b1x1` has the digits without the one it changes (level 0: `b0x2`; k=0: `b0`). Servers
    that differ in h digits have h! shortest paths of 2h links, and k+1 paths without a common link.
    Addresses 10.level+1.x.y, y from 1 to 254. Node order: servers, switches level by level.
    """
    count: int = n ** (k + 1)
    net = Builder(KIND, {"n": n, "k": k}, hosts_forward=True)
    width = 1 if n <= 10 else 2
    names = [_digits(number, n, k + 1, width) for number in range(count)]
    servers = [net.host(f"h{name}") for name in names]
    switches = [
        [net.switch(f"b{level}" + (f"x{_digits(rest, n, k, width)}" if k else ""), _LAYERS[level])
         for rest in range(count // n)]
        for level in range(k + 1)
    ]  # fmt: skip
    for number, server in enumerate(servers):
        block, place = divmod(number, 254)
        for level in range(k + 1):
            below = n**level
            rest = number // (below * n) * below + number % below
            net.attach(server, switches[level][rest], f"10.{level + 1}.{block}.{place + 1}")
    return net.build()


def _digits(number: int, base: int, places: int, width: int) -> str:
    return "".join(f"{number // base**place % base:0{width}d}" for place in reversed(range(places)))
