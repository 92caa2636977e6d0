"""The chart of idle subflows: what is compared, in what order, and what its title may say."""

from __future__ import annotations

from pathlib import Path

from model.tuning import KERNELS_OWN, UNTOUCHED, WMEM
from plots.data import Point
from plots.registry import CHARTS
from tests.support.chart_points import changed, sampled
from tests.support.svg_text import words_of

BEST = "tcp_wmem 4M"


TUNINGS: dict[str, dict[str, object]] = {
    UNTOUCHED: {"sysctls": dict(KERNELS_OWN)},
    "writes of 4K": {"write_bytes": 4096},
    BEST: {"sysctls": {WMEM: "4194304"}},
}


def tuned(name: str, idle_pct: float, seed: int = 1) -> Point:
    made = sampled(8, seed)
    metrics = {**made.metrics, "subflow_idle_pct": idle_pct}
    return changed(made, metrics=metrics, **TUNINGS[name])


def test_tunings_share_a_chart_and_the_title_compares_the_best(tmp_path: Path) -> None:
    points = [tuned(UNTOUCHED, 3.0), tuned("writes of 4K", 9.0), tuned(BEST, 0.5), tuned(BEST, 0.7, 2)]
    (path,) = CHARTS["subflow_idle"].draw([*points, sampled(1)], tmp_path)
    text = words_of(path)
    assert "tcp_wmem 4M: subflows idle 0.6 %" in text
    assert "kernel's own: subflows idle 3.0 %" in text


def test_without_samples_there_is_still_the_exact_share(tmp_path: Path) -> None:
    bare = changed(tuned(BEST, 2.0), read_table=lambda _name: None)
    (path,) = CHARTS["subflow_idle"].draw([bare], tmp_path)
    assert "idle 2.0 %" in words_of(path)
