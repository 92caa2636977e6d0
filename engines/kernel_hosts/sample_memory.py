"""Memory of a point's samples, in real and in virtual time. Pure."""

from __future__ import annotations

from model.spec import RunSpec

_QUEUE_SAMPLE, _SOCKET_SAMPLE, _PING_SAMPLE = 8, 190, 60
"""Bytes per port, per subflow and per subflow in each sample, in the program that runs the hosts. The core
copies queue lengths once, when it hands them over."""
_QUEUE_ROW, _SOCKET_ROW, _PING_ROW = 24, 96, 40
"""Bytes of the rows made of them, if no queue is empty."""


def samples_bytes(spec: RunSpec, ports: int, subflows: int) -> float:
    """Return the memory of all samples in the program that runs the hosts."""
    return _bytes(spec, ports * _QUEUE_SAMPLE, subflows * _SOCKET_SAMPLE, subflows * _PING_SAMPLE)


def tables_bytes(spec: RunSpec, ports: int, subflows: int) -> float:
    """Return the memory of the tables made of all samples."""
    return _bytes(spec, ports * _QUEUE_ROW, subflows * _SOCKET_ROW, subflows * _PING_ROW)


def _bytes(spec: RunSpec, queues: int, sockets: int, pings: int) -> float:
    """Return the memory of samples of these sizes. Samples begin with the warm-up."""
    sampling = spec.sampling
    each = ((sampling.queues_ms, queues), (sampling.sockets_ms, sockets), (sampling.pings_ms, pings))
    ms = 1000 * (spec.warmup_s + spec.seconds)
    return sum(ms / interval_ms * size for interval_ms, size in each if interval_ms)
