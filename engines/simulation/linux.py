"""Linux as the simulator has it, for what is compared with hosts that run it.

Measured on Linux 6.18 by capturing one connection of each kind: a full TCP segment has 1448 bytes in a frame
of 1514, an acknowledgement 66; with MPTCP's DSS option (RFC 8684, section 3.3; a 64-bit data sequence number
and acknowledgement) 1424 and 78. An emulated host's frames leave its kernel at once (a veth has no queue and
tells no sender to wait), so its queue, which is a port of the fabric, drops what it has no room for. Real
receivers acknowledge nearly every packet of MPTCP (0.97 for each with 8 subflows), and every second of TCP.
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
"""The buffers are those of `model/tuning.py` in full segments: a reserve of 4 MB; for each subflow 256 kB,
counted with some 300 bytes of overhead a segment, and the burst of 64 kB that may exceed it. A real one was
seen to hold 197."""
