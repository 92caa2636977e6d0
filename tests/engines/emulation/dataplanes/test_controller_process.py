"""The controller's process as a run sees it: its messages, its end, and a deadline for every wait."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import DeadlineError, RunError
from engines.emulation.dataplanes.ovs.controller import ControllerProcess
from engines.emulation.sandbox.inside import NOBODY

READS = "import json, sys, time; config = json.load(open(sys.argv[1])); "
LISTENS = READS + "print(json.dumps({'event': 'ready'}), flush=True); "
PROGRAMS = LISTENS + "print(json.dumps({'switches': config['switches']}), flush=True); "
WAITS = "time.sleep(60)"
DIES = "sys.exit('no room for rule 7')"


@pytest.fixture
def made() -> Iterator[list[ControllerProcess]]:
    controllers: list[ControllerProcess] = []
    yield controllers
    for controller in controllers:
        controller.stop()


def controller(program: str, folder: Path, made: list[ControllerProcess]) -> ControllerProcess:
    one = ControllerProcess([sys.executable, "-c", program], {"switches": 20}, folder, folder / "log", NOBODY)
    made.append(one)
    return one


def test_it_is_configured_and_reports_when_all_is_programmed(
    tmp_path: Path, made: list[ControllerProcess]
) -> None:
    one = controller(PROGRAMS + WAITS, tmp_path, made)
    one.start()
    assert one.wait_ready(20.0) == {"switches": 20}
    one.check()
    one.stop()
    one.check()


@pytest.mark.parametrize("program", [READS + DIES, "nonsense"])
def test_the_error_of_one_that_dies_before_it_listens_has_its_last_words(
    program: str, tmp_path: Path, made: list[ControllerProcess]
) -> None:
    with pytest.raises(RunError, match=r"exited with 1: .*(no room for rule 7|NameError)"):
        controller(program, tmp_path, made).start()


def test_one_that_dies_later_is_reported_at_the_next_check(
    tmp_path: Path, made: list[ControllerProcess]
) -> None:
    one = controller(PROGRAMS + DIES, tmp_path, made)
    one.start()
    one.wait_ready(20.0)
    end = time.monotonic() + 20
    with pytest.raises(RunError, match="no room for rule 7"):
        while time.monotonic() < end:
            one.check()
            time.sleep(0.01)


def test_one_that_programs_nothing_meets_the_deadline(tmp_path: Path, made: list[ControllerProcess]) -> None:
    one = controller(LISTENS + WAITS, tmp_path, made)
    one.start()
    with pytest.raises(DeadlineError, match=r"programmed within 0\.2 s: it printed nothing"):
        one.wait_ready(0.2)


def test_output_that_is_not_json_is_an_error(tmp_path: Path, made: list[ControllerProcess]) -> None:
    with pytest.raises(RunError, match="'hello' is not a JSON object"):
        controller("print('hello', flush=True); import time; " + WAITS, tmp_path, made).start()
