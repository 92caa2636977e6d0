"""The 16 bands of the CS244 2017 reproduction, against a slow model: FIFOs in strict priority, drop-tail."""

from __future__ import annotations

import pytest

from tests.fabric.test_pfabric_queue import Model, Sent, modelled, played, switch, traffic

LARGEST = 20_000 * 1460
BANDS = 16


def band(packet: Sent) -> int:
    return min(BANDS - 1, packet.rank // (LARGEST // BANDS))


class Bands(Model):
    """The earliest packet of the first band that has one goes next."""

    def _begin(self, at_ps: int) -> None:
        if not self.waiting:
            return
        first = min(self.waiting, key=lambda one: (band(one[1]), one[0]))
        self.waiting.remove(first)
        self.sending = (*first, at_ps + first[1].size * 8_000)


@pytest.mark.parametrize("limits", [(0, 0), (8, 0), (0, 9_000)])
@pytest.mark.parametrize("seed", range(3))
def test_bands_are_served_in_order_and_a_full_queue_drops_the_newcomer(
    limits: tuple[int, int], seed: int
) -> None:
    sent = traffic(seed, ranks=LARGEST + LARGEST // 4)
    left, dropped, _ = played(switch("pfabric_bands", *limits), sent)
    model = modelled(Bands((True, False), *limits), sent)
    assert left == model.left
    assert dropped == model.dropped
    assert bool(dropped) == bool(any(limits))
