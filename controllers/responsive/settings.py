"""Thresholds of the monitors and of the controller, and the delay and loss of their messages."""

from __future__ import annotations

from dataclasses import dataclass

OLD_WEIGHT, NEW_WEIGHT = 0.2, 0.8
"""Weights of the moving average of a flow's rate."""


@dataclass(frozen=True)
class Settings:
    """`monitor_s` is t_m, `demand_gap` delta_DGT, `rate_variation` delta_RVT, `checks` R, `demand_change`
    delta_DDT and `max_subflows` M of the slides. With `one_per_tick` a monitor serves at most one flow per
    tick, as the slides print the loop. Each message takes `message_s` and is lost with probability
    `message_loss`. From `down_at_s` on the controller does not run for `down_for_s` (0: it always runs); then
    it starts again and has forgotten everything. With `down_monitors` above 0 monitors are down in that time
    instead, each with that probability. They keep their flows' paths in a file, and read it when they start
    again.

    Two settings are not in the slides. With `closes`, the controller closes subflows of a flow whose demand
    has fallen. With `links_s` above 0 it learns of a link that fails or recovers after that time, avoids it,
    and moves the subflows that use it."""

    monitor_s: float = 0.002
    demand_gap: float = 0.15
    rate_variation: float = 0.05
    checks: int = 3
    demand_change: float = 0.1
    max_subflows: int = 4
    message_s: float = 0.0001
    message_loss: float = 0.0
    one_per_tick: bool = False
    down_at_s: float = 0.0
    down_for_s: float = 0.0
    down_monitors: float = 0.0
    closes: bool = False
    links_s: float = 0.0
