"""Difference between fluctuating windows and the fixed points of theory: n subflows beside one TCP flow, with
random losses only.

Windows change once per round trip. A packet is lost with probability p; a window with a loss is cut, others
grow by what their ACKs add. There are no queues, timeouts or schedulers. These explain the remaining
difference between this model and a measurement.

    python benchmarks/window_model.py --loss 0.1
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence

import click

from analysis.shares import bottleneck_share

SETTLING = 2000
"""Round trips at the start that are not counted."""
Increase = Callable[[Sequence[float], int], float]
"""Increase per ACK, from the windows and the index of a path."""


def _uncoupled(windows: Sequence[float], i: int) -> float:
    return 1 / windows[i]


def _ewtcp(windows: Sequence[float], i: int) -> float:
    return 1 / windows[i] / len(windows) ** 2


def _lia(windows: Sequence[float], i: int) -> float:
    return min(max(windows) / sum(windows) ** 2, 1 / windows[i])


def _balia(windows: Sequence[float], i: int) -> float:
    alpha = max(windows) / windows[i]
    return windows[i] / sum(windows) ** 2 * (1 + alpha) / 2 * (4 + alpha) / 5


INCREASES: dict[str, Increase] = {"reno": _uncoupled, "ewtcp": _ewtcp, "lia": _lia, "balia": _balia}


def mean_window(cc: str, subflows: int, loss: float, rounds: int, seed: int) -> float:
    """Return the packets of all subflows together, on average over `rounds` round trips."""
    rng = random.Random(seed)
    windows, total = [8.0] * subflows, 0.0
    for turn in range(SETTLING + rounds):
        total += sum(windows) if turn >= SETTLING else 0.0
        windows = [_after(cc, windows, i, rng.random() < 1 - (1 - loss) ** w) for i, w in enumerate(windows)]
    return total / rounds


def _after(cc: str, windows: Sequence[float], i: int, lost: bool) -> float:
    """Return a window one round trip later; after a loss whole packets and at least two, as in the kernel."""
    window = windows[i]
    if not lost:
        return window * (1 + INCREASES[cc](windows, i))
    alpha = min(max(windows) / window, 1.5) if cc == "balia" else 1.0
    return max(2.0, math.floor(window) - math.floor(window / 2 * alpha))


@click.command()
@click.option("--loss", "loss_pct", default=0.1, show_default=True, help="Lose this percentage of packets.")
@click.option("--rounds", default=60_000, show_default=True, help="Simulated round trips.")
@click.option("--seed", default=1, show_default=True, help="Seed of the losses.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(loss_pct: float, rounds: int, seed: int, as_json: bool) -> None:
    """Print the share of each algorithm beside the share at the fixed point."""
    tcp = mean_window("reno", 1, loss_pct / 100, rounds, seed)
    found = {}
    for cc in INCREASES:
        for subflows in (2, 4, 8):
            own = mean_window(cc, subflows, loss_pct / 100, rounds, seed)
            share, expected = 100 * own / (own + tcp), 100 * bottleneck_share(cc, subflows)
            found[f"{cc} {subflows}"] = {"share_pct": round(share, 1), "fixed_point_pct": round(expected, 1)}
    if as_json:
        click.echo(json.dumps({"benchmark": "window_model", "loss_pct": loss_pct, "rounds": rounds, **found}))
        return
    for name, row in found.items():
        click.echo(f"{name:10} {row['share_pct']:5.1f} %  fixed point {row['fixed_point_pct']:5.1f} %")


if __name__ == "__main__":
    main()
