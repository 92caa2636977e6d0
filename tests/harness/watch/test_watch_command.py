"""The command `refabric watch`, as a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.watch.watched_points import simulated, spec_of

REFABRIC = Path(sys.executable).with_name("refabric")


@contextmanager
def started(*argv: str | Path) -> Iterator[subprocess.Popen[str]]:
    command = [REFABRIC, "watch", *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    simulated(tmp_path, spec_of(1, seconds=2.0))
    with started(tmp_path) as process:
        assert process.stdout is not None
        found = re.fullmatch(r"Open (http://127\.0\.0\.1:\d+/\?token=[\w-]{32})\n", process.stdout.readline())
        assert found
        with urllib.request.urlopen(found[1], timeout=10) as answer:
            assert b"refabric watch" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(found[1][:-1], timeout=10)
        process.send_signal(number)
        assert process.wait(10) == 0


def test_json_names_the_address(tmp_path: Path) -> None:
    with started(tmp_path, "--json", "--port", "0") as process:
        assert process.stdout is not None
        event = json.loads(process.stdout.readline())
        assert event["event"] == "watch" and event["url"].startswith("http://127.0.0.1:")
        process.terminate()
        process.communicate(timeout=10)


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with started(tmp_path / "none") as process:
        _, error = process.communicate(timeout=20)
        assert process.returncode == 2 and error.count("\n") == 1 and "there is no such folder" in error
