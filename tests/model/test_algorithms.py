"""Names of transports side by side."""

from __future__ import annotations

import pytest

from model import transports
from model.congestion import CONGESTION_CONTROLS
from plots.shared import style


@pytest.mark.parametrize(
    ("cc", "subflows", "routing", "name", "told"),
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
def test_what_a_transport_is_called(cc: str, subflows: int, routing: str, name: str, told: str) -> None:
    assert transports.algorithm(cc, subflows, routing) == name
    assert transports.transport(cc, subflows, routing) == told


def test_every_algorithm_has_a_title_and_looks_of_its_own() -> None:
    names = list(transports.TITLES)
    assert set(names) == set(style.ALGORITHMS) >= set(CONGESTION_CONTROLS)
    for what in (transports.title, style.algorithm_colour, style.algorithm_marker):
        assert len({what(name) for name in names}) == len(names)
    assert sorted(["vegas", "lia", "tcp"], key=transports.rank) == ["tcp", "lia", "vegas"]
    assert style.algorithm_colour("vegas") == style.FAINT
