"""Names and captions of charts: every unusual value shows in both, and no chart overwrites another."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from analysis.quantities import GOODPUT_PCT_MEAN
from harness.options.fields import SPEC_FIELDS
from model.words import RELATIONS, WORDS
from plots.data import Inputs, panels
from plots.shared.naming import MAX_STEM, file_stems
from plots.shared.style import parameters
from tests.support.chart_points import SIGCOMM11_LEVELS, Point, point
from tests.support.specs.other_values import DEFAULTS, other

Values = Mapping[str, Any]
PATHS = sorted({*WORDS, *(field.path for field in SPEC_FIELDS)})
DUMBBELL, STRIDE = {"topology.kind": "dumbbell"}, {"workload.matrix": "stride"}
NEEDS: Mapping[str, Values] = {"transport.protocol": {"transport.subflows": 1}}
"""What a field's other value needs of other fields."""
PAIRS: Mapping[str, tuple[Values, Values]] = {
    "link.nic_queue_pkts": ({}, {"link.nic_queue_pkts": 7}),
    "transport.join_after_ms": ({}, {"transport.join_after_ms": 10.0}),
    "topology.params": (
        {**DUMBBELL, "topology.params": {"n": 2}}, {**DUMBBELL, "topology.params": {"n": 2, "lanes": 3}}
    ),
    "workload.params": (
        {**STRIDE, "workload.params": {"i": 2}}, {**STRIDE, "workload.params": {"i": 3}}
    ),
}  # fmt: skip
"""Two settings that differ in what each of RELATIONS describes."""


def point_with(values: Values) -> Point:
    """Return a simulated point, with subflows that could join late."""
    of = point(8)
    usual = {"engine": "simulator", "traffic": DEFAULTS.traffic}
    return dataclasses.replace(of, spec=of.spec.changed(usual | dict(values)))


def shown(*settings_of: Values) -> tuple[list[str], list[str]]:
    """Return the file names and the captions of one chart per setting."""
    of = panels([point_with(values) for values in settings_of])
    assert len(of) == len(settings_of)
    stems = file_stems("rank", [panel.spec for panel in of])
    return stems, [" ".join(parameters(panel)) for panel in of]


@pytest.mark.parametrize("path", PATHS)
def test_an_unusual_value_shows_in_file_names_and_captions(path: str) -> None:
    needs = NEEDS.get(path, {})
    stems, captions = shown(needs, {**needs, path: other(path)})
    assert len(set(stems)) == len(set(captions)) == 2
    if path in set(WORDS) - {"link.ecn_pkts"}:
        words = "_".join("".join(c if c.isalnum() else " " for c in WORDS[path](other(path))).split())
        assert sorted(words in stem for stem in stems) == [False, True], "words, not only a digest"


@pytest.mark.parametrize("path", RELATIONS)
def test_words_on_several_fields_show_in_file_names_and_captions(path: str) -> None:
    stems, captions = shown(*PAIRS[path])
    assert len(set(stems)) == len(set(captions)) == 2


def test_a_caption_does_not_name_a_limit_in_packets_of_queues_in_bytes() -> None:
    _, (caption,) = shown({"link.queue_bytes": 15_000})
    assert "queues of 15000 bytes" in caption and "packets" not in caption


def test_equal_names_of_different_settings_get_a_digest() -> None:
    one, other_file = ({"transport.cc": "mine.py", "transport.algorithm": f'"{text}"'} for text in "ab")
    stems, _ = shown(one, other_file)
    assert len(set(stems)) == 2
    assert all(stem.startswith("rank-fat_tree-k4-one_to_one-") for stem in stems)


def test_a_digest_fits_into_a_long_name() -> None:
    long = ({"transport.sysctls": {"net.ipv4." + "x" * 200: f"1{mark}2"}} for mark in "._")
    stems, _ = shown({}, *long)
    assert len(set(stems)) == 3 and sorted(map(len, stems))[1:] == [MAX_STEM] * 2


def overriding(words: str, values: Values) -> Point:
    return dataclasses.replace(point_with(values), overrides=(words,))


def test_the_plain_name_is_that_of_the_figures_own_settings() -> None:
    """Whatever else is drawn beside it, and if nothing else is drawn, too."""
    own, other_one = point_with({}), overriding("ecmp routing", {"routing": "ecmp"})

    def named(*points: Point) -> list[str]:
        of = panels(points)
        return file_stems("rank", [p.spec for p in of], overrides=[p.overrides for p in of])

    plain, ecmp = "rank-fat_tree-k4-one_to_one", "rank-fat_tree-k4-one_to_one-ecmp_routing"
    assert (named(own), named(other_one), sorted(named(own, other_one))) == ([plain], [ecmp], [plain, ecmp])


def test_published_levels_are_drawn_beside_own_settings_only() -> None:
    own, lossy = point_with({}), overriding("1 % random loss", {"link.loss": 0.01})
    elsewhere = point_with({"topology.kind": "dual_homed_fat_tree"})
    inputs = Inputs(
        [own, lossy, elsewhere], Path(), levels=SIGCOMM11_LEVELS,
        applies=lambda _level, spec: not spec.link.loss,
    )  # fmt: skip
    drawn = [inputs.beside(panel, GOODPUT_PCT_MEAN) for panel in panels(inputs.points)]
    assert sorted(map(len, drawn)) == [0, 0, 1]


def test_another_algorithm_takes_no_level_from_those_beside_it() -> None:
    """A chart of several congestion controls may have one that the figure does not."""
    own, mine = point_with({"transport.cc": "lia"}), overriding("mine.py", {"transport.cc": "./mine.py"})
    (panel,) = panels([own, mine], ignoring=["transport.cc"])
    inputs = Inputs([], Path(), applies=lambda _level, spec: spec.transport.cc == "lia")
    assert inputs.is_beside(SIGCOMM11_LEVELS[1].under("lia"), panel)
    assert not inputs.is_beside(SIGCOMM11_LEVELS[1].under("./mine.py"), panel)
