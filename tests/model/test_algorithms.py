"""Names of transports side by side."""

from __future__ import annotations

import pytest

from model import transports
from model.congestion import CONGESTION_CONTROLS, UNKNOWN_LOOK


@pytest.mark.parametrize(
    ("cc", "subflows", "routing", "name", "label"),
    [
        ("reno", 1, "hashed", "tcp", "TCP"),
        ("lia", 1, "hashed", "tcp", "TCP"),
        ("lia", 1, "scatter", "scatter", "PacketScatter"),
        ("dctcp", 1, "hashed", "dctcp", "TCP DCTCP"),
        ("reno", 8, "hashed", "reno", "MPTCP 8 uncoupled (reno)"),
        ("lia", 8, "hashed", "lia", "MPTCP 8 LIA"),
        ("lia", 2, "scatter", "lia", "MPTCP 2 LIA, scatter routing"),
        ("dctcp", 1, "scatter", "dctcp", "TCP DCTCP, scatter routing"),
        ("reno", 1, "ecmp", "tcp", "TCP, ecmp routing"),
        ("vegas", 4, "hashed", "vegas", "MPTCP 4 vegas"),
    ],
)
def test_what_a_transport_is_called(cc: str, subflows: int, routing: str, name: str, label: str) -> None:
    assert transports.algorithm(cc, subflows, routing) == name
    assert transports.transport(cc, subflows, routing) == label


def test_every_algorithm_has_a_title_and_looks_of_its_own() -> None:
    looks = [transports.look(name) for name in transports.ALGORITHMS]
    assert set(CONGESTION_CONTROLS) < set(transports.ALGORITHMS)
    for part in ("label", "colour", "marker"):
        assert len({getattr(look, part) for look in looks}) == len(looks)
    assert sorted(["vegas", "lia", "tcp"], key=transports.rank) == ["tcp", "lia", "vegas"]
    assert transports.look("vegas") == transports.Algorithm("vegas", *UNKNOWN_LOOK)
