"""`--config` and `--save-config`: several experiments from a file, checked before the first one starts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.command import refabric

ROOT = Path(__file__).resolve().parents[3]
STUDY = "cs244-one-to-one"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def example(kind: str) -> str:
    """Return the example of docs/guide/own.md in this language."""
    found = re.search(rf"```{kind}\n(.*?)```", (ROOT / "docs" / "guide" / "own.md").read_text(), re.DOTALL)
    assert found
    return found[1]


def points(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    events = [json.loads(line) for line in result.stdout.splitlines()]
    return [event["point"] for event in events if event["event"] == "job"]


def test_the_example_of_the_page_plans_runs_and_is_finished() -> None:
    Path("sweep.toml").write_text(example("toml"))
    planned = points(refabric("plan", "--config", "sweep.toml", "--json"))
    assert len(planned) == 5
    assert refabric("run", "--config", "sweep.toml").exit_code == 0
    status = refabric("status", "--config", "sweep.toml").stdout
    assert "3 of 3 planned points finished" in status
    assert "2 of 2 planned points finished" in status
    assert sorted(path.name for path in Path("results").iterdir()) == [STUDY, "star"]


def test_the_files_of_the_page_run() -> None:
    Path("net.json").write_text(example("json"))
    found = re.search(r"```\n(start_s,.*?)```", (ROOT / "docs" / "guide" / "own.md").read_text(), re.DOTALL)
    assert found
    Path("flows.csv").write_text(found[1])
    quick = ("--engine", "simulator", "--subflows", "1", "--seconds", "2")
    for more in (("--topology", "file:net.json"), ("--k", "4", "--workload", "trace:flows.csv")):
        done = refabric("run", STUDY, *more, *quick)
        assert done.exit_code == 0, done.output
    assert "2 of 2 sized flows completed" in done.stdout
    assert "--workload trace:flows.csv" in Path("results", STUDY, "report.html").read_text()


def test_a_saved_command_line_plans_the_same() -> None:
    line = ("--k", "4,6", "--engine", "simulator", "--stack", "acks=at_once", "--stack", "sack=off", "--qmon")
    planned = points(refabric("plan", STUDY, *line, "--json", "--save-config", "sweep.toml"))
    assert "json" not in Path("sweep.toml").read_text()
    assert points(refabric("plan", "--config", "sweep.toml", "--json")) == planned
    done = refabric("plan", STUDY, "--save-config", "sweep.toml")
    assert "it exists; name another file" in done.stderr


def test_the_command_line_goes_before_the_file_and_an_experiment_before_the_defaults() -> None:
    Path("sweep.toml").write_text(
        f'[defaults]\nengine = "fake"\nk = 4\n[[experiment]]\nname = "{STUDY}"\nengine = "simulator"\n'
    )
    planned = points(refabric("plan", "--config", "sweep.toml", "--json", "--k", "6", "--subflows", "1"))
    assert planned[1].startswith("simulator-k6")


ONE = f'[[experiment]]\nname = "{STUDY}"\nengine = "simulator"\nk = 4\n'
BAD = [
    ("[[experiment]", "config bad.toml: it is not TOML: .*line 1"),
    ("", "it has no experiments"),
    ("x = 1", "x: unknown; it has .defaults."),
    ("[defaults]\nname = 'a'\n" + ONE, "without a name"),
    ("[[experiment]]\nk = 4", "experiment 1: it has no name"),
    ('[[experiment]]\nname = "cs244-fig22"', r"experiment 1 \(cs244-fig22\): .* did you mean cs244-fig2"),
    (ONE + "subflow = 1", r"experiment 1 \(cs244-one-to-one\): No such option '--subflow'. Did you mean"),
    (ONE + '[[experiment]]\nname = "star"\nk = 5', "experiment 2 .star.: --k 5: a FatTree needs an even k"),
    (ONE + '[[experiment]]\nname = "dctcp"\nengine="simulator"\ntopology = "ft,4"', "--topology: dctcp has"),
    (ONE + "json = true", "No such option '--json'"),
    (ONE + "seed = [[1]]", r"--seed \[\[1\]\]|--seed"),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_mistake_is_one_line_and_nothing_starts(text: str, words: str) -> None:
    Path("bad.toml").write_text(text)
    done = refabric("run", "--config", "bad.toml")
    assert done.exit_code == 2, done.output
    assert re.search(words, done.stderr), done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("results").exists()
