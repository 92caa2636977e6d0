"""What SIGCOMM 2011 says about sequential transfers on EC2. docs/published.md lists it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from experiments.sigcomm11 import quotes
from experiments.sigcomm11.ec2.metrics import GAIN_BETWEEN_RACKS, GAIN_IN_A_RACK
from experiments.sigcomm11.statements import SIGCOMM11
from harness.metrics.published import SIGN, Published, Relation, Source

WORKLOAD = "in_turn:2000"
EMULATED_CLOUD: Mapping[str, int] = {"n": 12, "racks": 4, "tenants": 3}
"""The network that a machine with two cores can emulate."""
EMULATED_WORKLOAD = "in_turn:500"
"""Four times as many pairs per minute; their transfers meet the same neighbours more often."""


def _between(relation: Relation, value: float, tolerance: float, because: str, words: str) -> Published:
    return Published(
        GAIN_BETWEEN_RACKS, "cloud", 40, WORKLOAD, 4, relation, value, Source.TEXT, words, "SIGCOMM'11",
        SIGCOMM11, tolerance, because, quote=quotes.CLOUD,
    )  # fmt: skip


_UNKNOWN_WIRING = (
    "How EC2 was wired and what its other tenants sent is not known; ours is assumed and not fitted. Three "
    "times in the mean needs networks where most single paths are crowded beside free ones "
    "(docs/experiments/sigcomm11.md)."
)
_THREE_TIMES = _between(
    Relation.ABOUT, 3, 1.0, "a third: what neighbours did on EC2 is not known",
    "MPTCP three times TCP where there is path diversity",
)  # fmt: skip
_THREE_TIMES = dataclasses.replace(_THREE_TIMES, incomparable=_UNKNOWN_WIRING)
_MORE = _between(Relation.ABOVE, 1, *SIGN, "MPTCP gains where there is path diversity").of(_THREE_TIMES.words)
_NO_DIVERSITY = dataclasses.replace(
    _MORE, metric=GAIN_IN_A_RACK, relation=Relation.ABOUT, tolerance=0.1, source=Source.RECALLED,
    quote="",
    because="a tenth: more acknowledgements and their scheduling cost something",
    words="no gain where there is one path",
)  # fmt: skip


def _emulated(row: Published) -> Published:
    shape = {name: value for name, value in EMULATED_CLOUD.items() if name != "n"}
    about = {"k": EMULATED_CLOUD["n"], "workload": EMULATED_WORKLOAD, "engine": "mininet"}
    return dataclasses.replace(row, **about).on(**shape)  # type: ignore[arg-type]


EC2 = (
    *(dataclasses.replace(row, engine="simulator") for row in (_THREE_TIMES, _MORE, _NO_DIVERSITY)),
    _emulated(_MORE).with_caveat(
        "Twelve hosts have little to gain, and there are few pairs: emulated runs gave 0.98 times in one "
        "minute, 1.14 and 1.17 in longer runs, and 0.88 with Linux's own receive buffers "
        "(docs/experiments/sigcomm11.md)."
    ),
)
