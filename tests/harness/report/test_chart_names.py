"""Files of charts: the plain name is the figure's own setting, and no chart of an earlier drawing stays."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from engines.registry import SIMULATOR
from experiments.registry import CATALOGUE
from harness.options.options import UserOptions, resolve
from harness.report.figures import FigureCharts, draw
from tests.support.judged_points import judged, stored
from tests.support.stored_points import EXPERIMENT

FIGURE = dataclasses.replace(CATALOGUE.find(EXPERIMENT).figures[0], charts=("throughput",))
PLAIN = "throughput-fat_tree-k4-one_to_one"


def drawn(folder: Path, *options: UserOptions) -> set[str]:
    """Draw what the figure runs with each of these options; return the names of all charts in its folder."""
    specs = [
        spec
        for given in options
        for spec in FIGURE.points(resolve(given, FIGURE.defaults), lambda _network: 5.0)
    ]
    paths = draw([FigureCharts(FIGURE, judged([stored(spec, [2.0, 3.0]) for spec in specs]), folder)])
    there = {path for path in folder.iterdir() if path.suffix in {".svg", ".pdf", ".png"}}
    assert set(paths[FIGURE.name]) == there, "what is there is what was drawn"
    return {path.stem for path in there}


def with_options(**texts: str) -> UserOptions:
    return UserOptions.of(engine=SIMULATOR, k="4", subflows="1,2", **texts)


def test_names_of_charts_say_which_setting_they_show(tmp_path: Path) -> None:
    notes = tmp_path / "throughput-notes.txt"
    notes.write_text("the user's own")
    own, lossy = with_options(), with_options(loss="1")
    assert drawn(tmp_path, own) == {PLAIN}
    both = drawn(tmp_path, own, lossy)
    assert PLAIN in both and len(both) == 2
    (alone,) = drawn(tmp_path, lossy)
    assert "random_loss" in alone and {alone, PLAIN} == both
    assert PLAIN not in drawn(tmp_path, own, with_options(seconds="7")), "neither has the plain name"
    assert notes.exists()
