"""The registry of congestion controls: names, and what is in force where there is nothing to couple."""

from __future__ import annotations

import pytest

from model import transports
from model.congestion import CONGESTION_CONTROLS, UNKNOWN_LOOK, core_name, in_force, kernel_name, name_of

NAME_MAX = 16
"""TCP_CA_NAME_MAX (include/net/tcp.h), the closing zero included."""


@pytest.mark.parametrize("cc", CONGESTION_CONTROLS)
def test_the_kernels_name_fits_and_leads_back(cc: str) -> None:
    assert len(kernel_name(cc)) < NAME_MAX
    assert name_of(kernel_name(cc)) == core_name(cc)


def test_ours_cannot_be_taken_for_a_module_of_the_kernel() -> None:
    ours = {kernel_name(name) for name, cc in CONGESTION_CONTROLS.items() if cc.bpf}
    assert ours
    assert not ours & set(CONGESTION_CONTROLS)


@pytest.mark.parametrize(
    ("cc", "subflows", "expected"),
    [("lia", 1, "reno"), ("lia", 2, "lia"), *((cc, 1, cc) for cc in ("cubic", "dctcp", "vegas"))],
)
def test_coupling_needs_something_to_couple(cc: str, subflows: int, expected: str) -> None:
    assert in_force(cc, subflows) == expected


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
    unknown = transports.look("vegas")
    assert (unknown.label, unknown.colour, unknown.marker) == ("vegas", *UNKNOWN_LOOK)
