"""Points that were edited together with their hash: usable, or unreadable in one line; none harms another."""

from __future__ import annotations

import copy
import gzip
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import RefabricError
from experiments.command import main
from harness.results.store import Store, load_point, point_name, scan
from model.spec import RunSpec
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of

Place = tuple[str | int, ...]

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 1, 2, 33, 2**31, 2**63, 10**30, 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "none", "nan", "5", "../../x", "\x1b[31m", "\ud800", "a" * 5000, "star", "reference"]
    ),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
COMMANDS = ("status", "plan")
FUZZED = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """Yield every place of a JSON value."""
    if here:
        yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield from places(each, (*here, name))


def changed(data: Any, place: Place, value: Any) -> Any:
    """Return a copy with another value at one place."""
    whole = copy.deepcopy(data)
    part = whole
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    return whole


def put_edited(folder: Path, run: dict[str, Any]) -> Path:
    """Store an edited run.json with the hash and the name that its spec has, as far as it has any."""
    name = "edited-000000000000"
    try:
        spec = RunSpec.from_json(run["spec"])
        run["hash"] = spec.content_hash()
        name = point_name(spec)
    except (RefabricError, KeyError, TypeError, AttributeError):
        pass
    target = folder.with_name(name) if "/" not in name and len(name) < 200 else folder
    if target != folder and not target.exists():
        folder.rename(target)
        folder = target
    (folder / "run.json").write_text(json.dumps(run))
    return folder


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment's folder of a baseline and two points."""
    store = Store.open(tmp_path_factory.mktemp("stored") / "results", EXPERIMENT)
    put_baseline(store, spec_of(), 4.7)
    put(store, spec_of(2), result_of([4.5]))
    put(store, spec_of(1), result_of([2.5, 3.25]))
    return store.directory


@pytest.fixture
def results(stored: Path, tmp_path: Path) -> Path:
    shutil.copytree(stored, tmp_path / "results" / EXPERIMENT)
    return tmp_path / "results"


def fresh(stored: Path, results: Path) -> tuple[Path, Path]:
    """Restore the experiment's folder; return it and the point to damage."""
    folder = results / EXPERIMENT
    shutil.rmtree(folder)
    shutil.copytree(stored, folder)
    return folder, folder / point_name(spec_of(1))


def check(results: Path) -> None:
    """Check that the other points stay usable and that every command succeeds."""
    found = scan(results / EXPERIMENT)
    assert {point_name(spec_of(2))} <= {point.name for point in found.points}
    assert len(found.points) + len(found.broken) >= 3
    for error in found.broken:
        assert "\n" not in str(error)
    for command in COMMANDS:
        done = CliRunner().invoke(
            main, [command, EXPERIMENT, "--k", "4", "--rate", "5", "--results", str(results)]
        )
        assert done.exit_code == (1 if command == "status" and found.broken else 0), done.output


def test_a_line_feed_in_a_name_hides_no_point(stored: Path, results: Path) -> None:
    _, victim = fresh(stored, results)
    run = json.loads((victim / "run.json").read_text())
    put_edited(victim, changed(run, ("spec", "topology", "kind"), "\n"))
    check(results)
    assert len(scan(results / EXPERIMENT).broken) == 1


@FUZZED
@given(data=st.data())
def test_a_run_json_with_another_value_anywhere(stored: Path, results: Path, data: st.DataObject) -> None:
    _, victim = fresh(stored, results)
    run = json.loads((victim / "run.json").read_text())
    place = data.draw(st.sampled_from(list(places(run))))
    put_edited(victim, changed(run, place, data.draw(VALUES)))
    check(results)


@FUZZED
@given(data=st.data())
def test_a_cell_of_a_table_with_another_value(stored: Path, results: Path, data: st.DataObject) -> None:
    _, victim = fresh(stored, results)
    table = victim / data.draw(st.sampled_from(["flows.csv", "ports.csv", "samples/goodput.csv.gz"]))
    raw = table.read_bytes()
    text = (gzip.decompress(raw) if table.suffix == ".gz" else raw).decode()
    lines = [line.split(",") for line in text.splitlines()]
    row = data.draw(st.integers(0, len(lines) - 1))
    lines[row][data.draw(st.integers(0, len(lines[row]) - 1))] = data.draw(
        st.one_of(
            st.sampled_from(["", "nan", "inf", "-1", "9" * 5000, "1e999", "\x1b[2J", '"', "0x10"]), st.text()
        )
    )
    edited = ("\n".join(",".join(line) for line in lines) + "\n").encode("utf-8", "replace")
    table.write_bytes(gzip.compress(edited) if table.suffix == ".gz" else edited)
    check(results)
    for point in scan(results / EXPERIMENT).points:
        try:
            point.sample("goodput")
            _ = [*point.flows], [*point.ports]
        except RefabricError as error:
            assert "\n" not in str(error)


UNKNOWN: dict[str, Any] = {
    "topology.kind": "torus",
    "topology.params": {"k": 5},
    "workload.matrix": "tornado",
    "workload.params": {"speed": 3},
    "transport.cc": "swift",
    "transport.subflows": 99,
    "engine": "ns-3",
    "link.rate_mbps": -5.0,
    "stack.scheduler": "oracle",
    "seconds": 0.0,
}


@pytest.mark.parametrize("path", UNKNOWN)
def test_a_name_that_this_checkout_does_not_know(results: Path, path: str) -> None:
    victim = results / EXPERIMENT / point_name(spec_of(1))
    run = json.loads((victim / "run.json").read_text())
    run["spec"] = changed(run["spec"], tuple(path.split(".")), UNKNOWN[path])
    edited = put_edited(victim, run)
    (error,) = scan(results / EXPERIMENT).broken
    assert f"reading {edited / 'run.json'}: it was written by another revision of refabric" in str(error)
    assert "\n" not in str(error)
    check(results)


def test_a_file_that_a_stored_point_names_is_not_opened(results: Path, tmp_path: Path) -> None:
    """Otherwise `status` would wait for a pipe for ever, and quote the first line of any file."""
    secret = tmp_path / "secret"
    secret.write_text("root:secret\n")
    victim = results / EXPERIMENT / point_name(spec_of(1))
    run = json.loads((victim / "run.json").read_text())
    run["spec"]["link"]["trace"] = f"@{secret}"
    put_edited(victim, run)
    (error,) = scan(results / EXPERIMENT).broken
    assert "--link-trace" in str(error) and "root:" not in str(error)


def test_a_bomb_is_not_unpacked(stored: Path, results: Path) -> None:
    _, victim = fresh(stored, results)
    (victim / "samples" / "goodput.csv.gz").write_bytes(
        gzip.compress(b"t_s,flow,mbps\n" + b"0.5,0,1.5\n" * 20_000_000, 9)
    )
    with pytest.raises(RefabricError, match=r"it is not what run\.json promises"):
        load_point(victim).sample("goodput")


@pytest.mark.parametrize("file", ["run.json", "flows.csv", "samples/goodput.csv.gz"])
def test_a_link_is_not_followed_and_a_pipe_not_waited_for(results: Path, tmp_path: Path, file: str) -> None:
    victim = results / EXPERIMENT / point_name(spec_of(1))
    (victim / file).rename(tmp_path / "moved")
    (victim / file).symlink_to(tmp_path / "moved")
    with pytest.raises(RefabricError, match="it is a symbolic link, which is not followed"):
        load_point(victim).sample("goodput")
    (victim / file).unlink()
    os.mkfifo(victim / file)
    with pytest.raises(RefabricError, match=r"regular file|no samples"):
        load_point(victim).sample("goodput")
