"""Names of tunings."""

from __future__ import annotations

import pytest

from engines.spec import TransportSpec
from engines.tuning import RESERVE, words


@pytest.mark.parametrize(
    ("transport", "expected"),
    [
        (TransportSpec(8), "kernel's own"),
        (TransportSpec(8, sysctls=RESERVE), "tcp_wmem 4M 16K 4M"),
        (TransportSpec(8, write_bytes=4096), "writes of 4K"),
        (
            TransportSpec(
                8, sysctls={"net.mptcp.scheduler": "default", "net.ipv4.tcp_notsent_lowat": "1000"}
            ),
            "tcp_notsent_lowat 1000, scheduler default",
        ),
        (TransportSpec(8, sysctls=RESERVE, write_bytes=1000), "tcp_wmem 4M 16K 4M, writes of 1000"),
    ],
)
def test_words(transport: TransportSpec, expected: str) -> None:
    assert words(transport) == expected
