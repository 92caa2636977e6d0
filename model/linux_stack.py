"""Linux's stack in the simulator, for comparisons with real hosts.

Measured on Linux 6.18 by capturing one connection of each kind: a full TCP segment has 1448 bytes in a frame
of 1514, an acknowledgement 66 bytes. With MPTCP's DSS option (RFC 8684, section 3.3; 64-bit data sequence
number and acknowledgement) these are 1424 and 78. Frames leave an emulated host's kernel at once, because a
veth has no queue and does not make senders wait. The host's queue, a port of the fabric, therefore drops
packets when it is full. Real receivers acknowledge nearly every packet of MPTCP (0.97 per packet with 8
subflows), and every second packet of TCP.
"""

from __future__ import annotations

from model.spec import StackSpec

LINUX = StackSpec(
    mptcp_bytes=24,
    mptcp_ack_bytes=12,
    ack_gaps=True,
    nic_waits=False,
    recovery="linux",
    scheduler="burst",
    send_buffer=2945,
    subflow_buffer=198,
)
"""The buffers are those of `model/tuning.py` in full segments. They are a reserve of 4 MB and, per subflow,
256 kB, with about 300 bytes of overhead per segment, plus the burst of 64 kB that may exceed it. A real
subflow was measured to hold 197 segments."""
