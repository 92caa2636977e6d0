"""Names of transports side by side."""

from __future__ import annotations

import pytest

from model import transports
from model.congestion import CONGESTION_CONTROLS, UNKNOWN_LOOK


@pytest.mark.parametrize(
    ("cc", "subflows", "routing", "name", "label"),
    [
        ("reno", 1, "hashed", "tcp", "TCP"),
        ("lia", 1, "scatter", "scatter", "PacketScatter"),
        ("reno", 8, "hashed", "reno", "MPTCP 8 uncoupled (reno)"),
        ("dctcp", 1, "scatter", "dctcp", "TCP DCTCP, scatter routing"),
        ("vegas", 4, "hashed", "vegas", "MPTCP 4 vegas"),
    ],
)
def test_what_a_transport_is_called(cc: str, subflows: int, routing: str, name: str, label: str) -> None:
    assert transports.algorithm(cc, subflows, routing) == name
    assert transports.transport(cc, subflows, routing) == label


def test_every_algorithm_has_a_title_and_looks_of_its_own() -> None:
    looks = [transports.look(name) for name in transports.ALGORITHMS]
    assert set(CONGESTION_CONTROLS) < set(transports.ALGORITHMS)
    assert len({look.label for look in looks}) == len({look.marker for look in looks}) == len(looks)
    assert transports.look("vegas") == transports.Algorithm("vegas", *UNKNOWN_LOOK)
