"""The network of `refabric shell`, for real hosts on whatever machine they run. Pure."""

from __future__ import annotations

import topos
from common.errors import UsageError
from engines.kernel_hosts.checks import check_hosts
from model.spec import LinkSpec, OpenFlowSpec, RunSpec, TopologySpec
from topos.topology import Topology

USUAL_OPENFLOW = OpenFlowSpec()


def shell_spec(
    topology: str,
    rate_mbps: float,
    queue_pkts: int,
    dataplane: str = RunSpec.dataplane,
    openflow: OpenFlowSpec = USUAL_OPENFLOW,
) -> tuple[RunSpec, Topology]:
    """Return the network `topology` ("ft,4") with links of `rate_mbps` and queues of `queue_pkts`.

    Raises UsageError.
    """
    kind, params = topos.parse(topology)
    built = topos.build(kind, params)
    check_hosts(built)
    if not rate_mbps > 0:
        raise UsageError(f"the link rate must be above 0 Mb/s, not {rate_mbps:g}")
    if queue_pkts < 1:
        raise UsageError(f"a queue must hold at least 1 packet, not {queue_pkts}")
    link = LinkSpec(rate_mbps, queue_pkts=queue_pkts, nic_queue_pkts=queue_pkts)
    network = TopologySpec(built.kind, built.params)
    return RunSpec(link, network, dataplane=dataplane, openflow=openflow), built
