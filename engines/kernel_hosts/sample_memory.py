"""Memory of an emulated point's samples, in real and in virtual time. Pure."""

from __future__ import annotations

from model.spec import RunSpec

_QUEUE_SAMPLE, _SOCKET_SAMPLE, _PING_SAMPLE = 26, 400, 250
"""Bytes per port, per subflow and per subflow in each sample: in the core, in Python, and in tables."""


def samples_bytes(spec: RunSpec, ports: int, subflows: int) -> float:
    """Return the memory of all samples of the measured window."""
    sampling = spec.sampling
    each = (
        (sampling.queues_ms, ports * _QUEUE_SAMPLE),
        (sampling.sockets_ms, subflows * _SOCKET_SAMPLE),
        (sampling.pings_ms, subflows * _PING_SAMPLE),
    )
    return sum(spec.seconds * 1000 / interval_ms * size for interval_ms, size in each if interval_ms)
