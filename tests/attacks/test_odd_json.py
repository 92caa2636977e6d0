"""Odd JSON and TOML in every file that is read: usable, or one line; never a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from common import stored_json
from common.errors import RefabricError
from engines.emulation import calibrate
from experiments.command import main
from harness.options.user_files import network_of
from harness.results import store
from harness.results.run_json import RUN, Attempt
from harness.results.store import Store, scan
from model.machine import MachineNoise, Utilisation
from model.result import Status
from model.spec import TopologySpec
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of

NESTED = "[" * 100_000 + "]" * 100_000
ODD = (
    *("null", "true", "0", "-1", "1e999", "-1e999", "NaN", "Infinity", "1" * 400, "1" * 5000, str(2**63)),
    "1.5",
    *('""', '"\\ud800"', '"\\u001b[2J"', '"' + "a" * 5000 + '"', "[]", "[[]]", "[1, 2]", "{}", '{"a": 1}'),
    *('{"": {}}', NESTED, '{"a": ' * 50 + "1" + "}" * 50),
)  # fmt: skip
MARK = "<odd>"


def places(value: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield every place of a JSON value, the value itself first."""
    yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield from places(each, (*here, name))


def spoilt(value: Any) -> Iterator[str]:
    """Yield the JSON text of a value with each odd text at each place, in turn."""
    for place in places(value):
        whole: Any = {"": copy.deepcopy(value)}
        part, last = whole, ""
        for name in place:
            part, last = part[last], name  # type: ignore[assignment]
        part[last] = MARK
        text = json.dumps(whole[""])
        for odd in ODD:
            yield text.replace(f'"{MARK}"', odd)


def test_run_json_and_origin_json(tmp_path: Path) -> None:
    """L4: every value of run.json, replaced by every odd one; the other point stays usable."""
    store = Store.open(tmp_path / "results", EXPERIMENT)
    put_baseline(store, spec_of(), 4.7)
    point = put(store, spec_of(2), result_of([4.5], Status.SUSPECT, "late"))
    store.note_attempt(point, Attempt(Status.OK, (), 4.5, 1.0, "2026-01-01T00:00:00Z"))
    run = json.loads((point.path / RUN).read_text())
    del run["spec"]  # tests/harness/results/test_fuzzed_store.py, with hashes made to fit
    del run["provenance"]
    for text in spoilt(run):
        (point.path / RUN).write_text(text)
        found = scan(store.directory)
        assert len(found.points) + len(found.broken) == 2 and found.points, text[:200]
        assert all("\n" not in str(error) for error in found.broken)


def test_manifests(tmp_path: Path) -> None:
    """L4: a damaged manifest is one line."""
    store.add_to_manifest(tmp_path, "figure", ["a-000000000000"])
    file = tmp_path / store.MANIFESTS / "figure.json"
    for text in spoilt(json.loads(file.read_text())):
        file.write_text(text)
        try:
            assert all(isinstance(name, str) for name in store.read_manifest(tmp_path, "figure"))
        except RefabricError as error:
            assert "\n" not in str(error)


def test_calibrated_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L4: a damaged entry is as good as none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    noise = MachineNoise(10.0, 1.0, 2.0, 3.0, 0.5, ((0, 2.0, 3.0),))
    entry = calibrate.Calibration(
        TopologySpec("fat_tree", {"k": 4}), 5.0, 1e9, noise, (Utilisation(1e6, 50.0),)
    )
    calibrate.remember(entry)
    assert calibrate.entries() == [entry]
    file = calibrate.path()
    for text in spoilt(json.loads(file.read_text())):
        file.write_text(text)
        for found in calibrate.entries():
            assert isinstance(asdict(found), dict) and found.topology.params == {"k": 4}


NETWORK: dict[str, Any] = {
    "nodes": [
        {"id": "a", "kind": "host"},
        {"id": 2, "kind": "host"},
        {"id": "s", "kind": "switch", "layer": "edge"},
    ],
    "links": [
        {"source": "a", "target": "s", "rate_mbps": 10, "delay_us": 1.5},
        {"source": 2, "target": "s", "rate_mbps": 20, "delay_us": 0},
    ],
    "directed": False,
}


def test_networks(tmp_path: Path) -> None:
    """L4: a layer that is a list, and a rate of 400 digits, ended in tracebacks."""
    file = tmp_path / "net.json"
    file.write_text(json.dumps(NETWORK))
    assert network_of(str(file)).kind == "file"
    for text in spoilt(NETWORK):
        file.write_text(text)
        try:
            network_of(str(file))
        except RefabricError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000


@pytest.mark.parametrize(
    "value",
    ["[" * 5000 + "]" * 5000, "1" * 5000, "nan", "1979-05-27", '"\\u0000"', '"\\ud800"', "{a = {b = 1}}",
     "[[1], [2]]", "true", "1e999"],
)  # fmt: skip
def test_configs(tmp_path: Path, value: str) -> None:
    """L4: nested lists and long integers ended in tracebacks."""
    file = tmp_path / "sweep.toml"
    for text in (f"x = {value}", f"[defaults]\nk = {value}", f"[[experiment]]\nname = {value}"):
        file.write_text(f'{text}\n[[experiment]]\nname = "{EXPERIMENT}"\nengine = "fake"\nk = 4\n')
        done = CliRunner().invoke(main, ["plan", "--config", str(file)])
        assert done.exit_code in {0, 2} and not isinstance(done.exception, Exception), done.output
        if done.exit_code:
            assert len(done.output.splitlines()) == 1, done.output


@pytest.mark.parametrize("odd", ODD)
def test_strict_json(odd: str) -> None:
    """L4: a value or a ValueError."""
    try:
        json.dumps(stored_json.loads(odd.encode()), allow_nan=False).encode()
    except ValueError as error:
        assert len(str(error)) < 200
