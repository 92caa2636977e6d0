"""The paper whole: its figures, what they share, and which options it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from engines.registry import VIRTUAL_TIME
from experiments import session, sigcomm11
from experiments.cli import main
from experiments.options import Given
from experiments.point import hosts_of
from experiments.registry import EXPERIMENTS
from experiments.session import Plan
from fabric.errors import UsageError

PAPER = sigcomm11.EXPERIMENT


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def plan_of(name: str, **typed: object) -> Plan:
    given = Given(**typed)  # type: ignore[arg-type]
    return session.make_plan(EXPERIMENTS[name], given, session.engine_for(EXPERIMENTS[name], given))


def refabric(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


class TestTheWholePaper:
    def test_every_figure_has_a_section_and_runs_alone_in_the_same_folder(self) -> None:
        assert [f.section for f in PAPER.figures] == [
            section for section, figures in sigcomm11.SECTIONS.items() for _ in figures
        ]
        for figure in PAPER.figures:
            assert EXPERIMENTS[figure.name].figures == (figure,)
            assert EXPERIMENTS[figure.name].folder == PAPER.folder

    def test_names_are_the_papers_own(self) -> None:
        names = [figure.name for figure in PAPER.figures]
        assert len(set(names)) == len(names)
        assert all(name.startswith("sigcomm11-") for name in names)

    @pytest.mark.parametrize("typed", [{}, {"profile": "paper"}, {"seed": 3}, {"seeds": 2}])
    def test_the_common_options_suit_all_figures(self, typed: dict[str, object]) -> None:
        assert all(part.specs for part in plan_of("sigcomm11", engine="simulator", **typed).parts)

    @pytest.mark.parametrize(
        "typed",
        [{"k": "4"}, {"workload": "all"}, {"subflows": "2"}, {"rate": "5"}, {"qmon": True}, {"seconds": 1.0}],
    )
    def test_others_are_one_figures_own(self, typed: dict[str, object]) -> None:
        with pytest.raises(UsageError) as refused:
            plan_of("sigcomm11", **typed)
        (option,) = typed
        assert f"--{option}: every figure of sigcomm11 has its own" in str(refused.value)
        assert "sigcomm11-throughput" in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_a_figure_alone_takes_what_it_always_took(self) -> None:
        specs = plan_of("sigcomm11-throughput", k="4", subflows="2", seconds=1.0).parts[0].specs
        assert [(s.topology.k, s.transport.subflows, s.seconds) for s in specs] == [(4, 2, 1.0)]


class TestSmoke:
    def test_every_figure_is_small_and_short(self) -> None:
        for part in plan_of("sigcomm11", profile="smoke", engine="simulator").parts:
            assert part.specs, part.figure.name
            for spec in part.specs:
                assert spec.engine in VIRTUAL_TIME
                assert spec.seconds * spec.link.rate_mbps <= 80, part.figure.name
            assert max(hosts_of(spec) for spec in part.specs) <= 256, part.figure.name
