"""Memory of a point's samples in the program that runs the hosts, in real and in virtual time. Pure."""

from __future__ import annotations

from model.spec import RunSpec

_QUEUE_SAMPLE, _SOCKET_SAMPLE, _PING_SAMPLE = 8, 190, 60
"""Bytes per port, per subflow and per subflow in each sample: columns of numbers. The core copies
queue lengths once, when it hands them over."""


def samples_bytes(spec: RunSpec, ports: int, subflows: int) -> float:
    """Return the memory of all samples, which begin with the warm-up."""
    sampling = spec.sampling
    each = (
        (sampling.queues_ms, ports * _QUEUE_SAMPLE),
        (sampling.sockets_ms, subflows * _SOCKET_SAMPLE),
        (sampling.pings_ms, subflows * _PING_SAMPLE),
    )
    ms = 1000 * (spec.warmup_s + spec.seconds)
    return sum(ms / interval_ms * size for interval_ms, size in each if interval_ms)
