"""The points that are compared with csg-htsim, and the name of its numbers."""

from __future__ import annotations

from engines.registry import SIMULATOR
from experiments.registry import CATALOGUE
from experiments.validation import htsim_reference
from harness.metrics.metrics import JAIN, LINK_PCT_MEAN
from harness.metrics.published import Source, known_as
from harness.options.options import UserOptions, resolve

FIGURES = htsim_reference.EXPERIMENT.figures


def test_points_are_set_up_as_htsim_is() -> None:
    for figure, acks in zip(FIGURES, ("routed", "at_once"), strict=True):
        specs = figure.points(resolve(UserOptions(), figure.defaults), lambda _: 100.0)
        assert {spec.engine for spec in specs} == {SIMULATOR}
        assert {spec.stack.acks for spec in specs} == {acks}
        assert {spec.link.queue_bytes for spec in specs} == {150_000}
        assert {spec.link.random_pkts for spec in specs} == {3}
        assert {spec.stack.payload_bytes + spec.stack.header_bytes for spec in specs} == {1500}
        assert len({spec.seed for spec in specs}) >= 6


def test_a_reference_is_never_called_published() -> None:
    for figure in CATALOGUE.find("htsim-reference").figures:
        assert known_as(figure.published) == "reference"
        assert {row.source for row in figure.published} == {Source.REFERENCE}


def test_every_subflow_count_has_a_mean_and_an_index() -> None:
    for figure, row in zip(FIGURES, (htsim_reference.ROUTED, htsim_reference.AT_ONCE), strict=True):
        assert figure.defaults.subflows == tuple(row)
        for n in row:
            tolerances = {p.metric: p.tolerance for p in figure.published if p.subflows == n}
            assert tolerances == {LINK_PCT_MEAN: 3.0, JAIN: 0.02}
