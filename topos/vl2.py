"""VL2 (Greenberg et al., SIGCOMM 2009, section 4.1): a folded Clos network with faster links than the
servers'.

It has D_A-port aggregation and D_I-port intermediate switches. D_I aggregation switches are each joined to
all D_A/2 intermediate ones. D_A D_I / 4 top-of-rack switches have 20 servers each and two uplinks, to
different aggregation switches. Links between switches have 10 times the rate of servers' links (10 and 1 Gb/s
in the paper), so 20 servers have 20 times a server's rate upwards: nothing is oversubscribed.
"""

from __future__ import annotations

from topos.topology import Builder, Layer, Topology

KIND = "vl2"
MAX_PORTS = 144
SERVERS = 20
MAX_SERVERS = 252
SPEED = 10
_RACKS_A_BLOCK = 250


def vl2(da: int, di: int, servers: int = SERVERS) -> Topology:
    """Return VL2 with `da`-port aggregation and `di`-port intermediate switches, both even.

    Names: server `t0h3`, top-of-rack switch `t0`, aggregation `a1`, intermediate `i2`. Racks 0 .. da/2-1 are
    joined to aggregation switches 0 and 1, the next da/2 to 2 and 3, and so on. Racks at different pairs of
    aggregation switches have 2 da shortest paths (two up, da/2 across, two down), racks at one pair have 2.
    Addresses 10.block.rack.server+2, 250 racks per block. Node order: hosts, racks, aggregation,
    intermediate.
    """
    net = Builder(KIND, {"da": da, "di": di, "servers": servers})
    count = da * di // 4
    hosts = [net.host(f"t{t}h{h}") for t in range(count) for h in range(servers)]
    racks = [net.switch(f"t{t}", Layer.EDGE) for t in range(count)]
    aggs = [net.switch(f"a{a}", Layer.AGG) for a in range(di)]
    intermediates = [net.switch(f"i{i}", Layer.CORE) for i in range(da // 2)]
    for number, host in enumerate(hosts):
        rack, slot = divmod(number, servers)
        block, place = divmod(rack, _RACKS_A_BLOCK)
        net.attach(host, racks[rack], f"10.{block}.{place}.{slot + 2}")
    for number, rack_switch in enumerate(racks):
        pair = number // (da // 2)
        for agg in aggs[2 * pair : 2 * pair + 2]:
            net.link(rack_switch, agg, SPEED)
    for agg in aggs:
        for intermediate in intermediates:
            net.link(agg, intermediate, SPEED)
    return net.build()
