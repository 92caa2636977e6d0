"""The controller's configuration file: it reads back as written, and an error in it is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from common.errors import UsageError
from controllers.openflow.config import ControllerConfig, Mode, parse_address, read_config

GOOD = {"topology": "fat_tree", "params": {"k": 4}}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    config = ControllerConfig("ls", {"leaves": 3}, "ecmp", 9, Mode.HYBRID, "unix:/run/of", "/run/c", 5.0)
    (tmp_path / "c.json").write_text(config.to_json())
    assert read_config(tmp_path / "c.json") == config
    assert len(config.build().switches) == 7


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "'topology' is missing"),
        ([1], "must be one JSON object"),
        ({**GOOD, "colour": 1}, "unknown key 'colour'"),
        ({**GOOD, "mode": "lazy"}, "choose one of reactive, proactive, hybrid"),
        ({**GOOD, "seed": "x"}, "'seed' is 'x', which has the wrong type"),
        ({**GOOD, "listen": "tcp:6653"}, "write tcp:ADDRESS:PORT or unix:PATH"),
    ],
)
def test_errors_name_the_file(tmp_path: Path, given: object, complaint: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(given))
    with pytest.raises(UsageError, match=complaint) as caught:
        read_config(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_or_no_json(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_config(tmp_path / "none.json")
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(UsageError, match=r"c\.json"):
        read_config(tmp_path / "c.json")


def test_addresses() -> None:
    assert parse_address("tcp:127.0.0.1:6653") == ("127.0.0.1", 6653)
    assert parse_address("unix:/run/of.sock") == Path("/run/of.sock")
    for wrong in ("tcp:127.0.0.1:70000", "unix:", "ssl:1.2.3.4:5", "tcp::5"):
        with pytest.raises(UsageError, match="cannot listen"):
            parse_address(wrong)
