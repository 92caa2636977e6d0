"""A results folder that somebody sent: whatever is in it, commands end in a line and use little memory."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
import os
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import topos
from common import files
from common.errors import StoreError, UsageError
from common.files import remove_tree
from experiments.command import main
from harness import contents
from harness.baseline import baseline_of
from harness.results import tables
from harness.results.store import Store, pack, point_name, scan
from harness.results.tables import Content
from model.result import FlowRow, Table
from model.spec import RunSpec, TopologySpec
from tests.support.stored_points import EXPERIMENT, flow_row, put, put_baseline, result_of, spec_of
from workloads import matrices

ROOT = Path(__file__).parents[2]
LEVELS = 3000
"""More than Python's recursion limit, and names longer than a path may be."""


def nest(folder: Path, levels: int = LEVELS) -> None:
    """Make nested folders, with a file on each level."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 20, dir_fd=handle)
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=handle))
        inner = os.open("d" * 20, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)


def test_a_deep_unfinished_folder_is_removed(tmp_path: Path) -> None:
    """L10: a `.tmp-` folder of 3000 nested folders ended every run in a RecursionError."""
    deep, other = tmp_path / "results" / ".tmp-deep", tmp_path / "other"
    deep.mkdir(parents=True)
    other.mkdir()
    (other / "file").touch()
    nest(deep)
    (deep / "link").symlink_to(other)
    assert files.remove_abandoned(deep.parent) == [".tmp-deep"]
    assert list(deep.parent.iterdir()) == [] and (other / "file").exists()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder with a baseline, a point with two subflows, and one to damage."""
    store = Store.open(tmp_path / "results", EXPERIMENT)
    put_baseline(store, spec_of(), 4.7)
    put(store, spec_of(2), result_of([4.5]))
    put(store, spec_of(1), result_of([2.5, 3.25]))
    return tmp_path / "results"


def victim_of(results: Path) -> Path:
    return results / EXPERIMENT / point_name(spec_of(1))


def edit(point: Path, **parts: object) -> Path:
    """Change parts of a stored spec, and the hash and the folder's name with it if there is such a spec;
    return the folder."""
    run = json.loads((point / "run.json").read_text())
    run["spec"] |= parts
    name = point.name
    with contextlib.suppress(UsageError):
        spec = RunSpec.from_json(run["spec"])
        run["hash"], name = spec.content_hash(), point_name(spec)
    (point / "run.json").write_text(json.dumps(run))
    return point.rename(point.with_name(name))


def commands_go_on(results: Path, *commands: str) -> str:
    """Check that each command names one damaged file and shows the other points; return what they print."""
    output = ""
    for command in commands or ("status", "plot", "report"):
        done = CliRunner().invoke(main, [command, EXPERIMENT, "--results", str(results)])
        assert done.exit_code == 1 and not isinstance(done.exception, Exception), done.output
        assert len([line for line in done.output.splitlines() if "run.json: " in line]) == 1, done.output
        output += done.output
    (error,) = scan(results / EXPERIMENT).broken
    assert "\n" not in str(error)
    assert {point.name for point in scan(results / EXPERIMENT).points} >= {point_name(spec_of(2))}
    return output


def network_text(nodes: object, links: object) -> dict[str, int | str]:
    return {"name": "x", "network": json.dumps({"nodes": nodes, "links": links, "rate_mbps": 0.0})}


def links_of(*ends: tuple[int, int]) -> list[list[int]]:
    return [[a, b, 1, 0, 0, 0] for a, b in ends]


HUGE: dict[str, dict[str, int | str]] = {
    "fat_tree": {"k": 254},
    "fat_tree_oversubscribed": {"k": 16, "oversubscription": 32},
    "dual_homed_fat_tree": {"k": 254},
    "vl2": {"da": 144, "di": 144, "servers": 252},
    "bcube": {"n": 64, "k": 3},
    "file": {"name": "x", "network": "[" * 1_000_000},
    "file_of_nothing": network_text([], []),
    "file_of_one_host": network_text([["a", 0]], []),
    "file_of_infinity": {"name": "x", "network": '{"nodes":[["a",1e999]],"links":[],"rate_mbps":0}'},
}


@pytest.mark.parametrize("kind", HUGE)
def test_a_point_of_a_huge_network_is_unreadable(results: Path, kind: str) -> None:
    """M7: a stored network of millions of links, or none, took the memory or ended `report`, `plot`."""
    edit(
        victim_of(results),
        topology={"kind": kind.partition("_of_")[0].removesuffix("_oversubscribed"), "params": HUGE[kind]},
    )
    commands_go_on(results)


UNDRAWABLE: dict[str, dict[str, object]] = {
    "event of an unknown link": {"events": [{"t_s": 1.0, "a": "x", "b": "y", "share": 0.0}]},
    "trace without flows": {"workload": {"matrix": "trace", "params": {}}},
    "too few hosts": {"workload": {"matrix": "map_reduce", "params": {"maps": 5000}}},
    "many servers that forward": {
        "topology": {"kind": "bcube", "params": {"n": 25, "k": 2}},
        "workload": {"matrix": "one_to_one", "params": {}},
    },
}


@pytest.mark.parametrize("kind", UNDRAWABLE)
def test_a_point_that_cannot_be_drawn_harms_no_report(results: Path, kind: str) -> None:
    """M7: an event of an unknown link ended `report`; forwarding tables of a BCube took 7.5 GB there."""
    edit(victim_of(results), **UNDRAWABLE[kind])
    begin = time.monotonic()
    done = CliRunner().invoke(main, ["report", EXPERIMENT, "--results", str(results)])
    assert done.exit_code == 0, done.output
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("text", ["ft,254", "dhft,254", "vl2,144,144,252", "bcube,64,3"])
def test_a_huge_network_of_an_option_is_refused(text: str) -> None:
    """M7: typed networks get the same error, before they are built."""
    done = CliRunner().invoke(main, ["plan", EXPERIMENT, "--topology", text])
    assert done.exit_code == 2 and "choose" in done.output, done.output


def test_the_largest_networks_that_are_used_still_exist() -> None:
    """M7: 8192 hosts at packet level, 101 306 hosts at flow level (docs/flow-level.md)."""
    for k in (32, 48, 74):
        topos.check("fat_tree", {"k": k})


def test_exponentially_many_shortest_paths_are_not_listed(results: Path) -> None:
    """M7: 400 diamonds in a row have 2 ^ 400 shortest paths, which the check of a baseline walked along."""
    nodes: list[list[object]] = [["a", 0], ["b", 0], *([f"s{n}", 1] for n in range(1201))]
    links = links_of((0, 2), (1, 1202))
    for first in range(2, 1202, 3):
        links += links_of(
            (first, first + 1), (first, first + 2), (first + 1, first + 3), (first + 2, first + 3)
        )
    spec = dataclasses.replace(
        baseline_of(spec_of()), topology=TopologySpec("file", network_text(nodes, links))
    )
    put(Store.open(results, EXPERIMENT), spec, result_of([4.7]))
    assert len(scan(results / EXPERIMENT).points) == 4


@pytest.mark.parametrize(
    ("matrix", "params"),
    [
        ("all_to_all", {}),
        ("map_reduce", {"maps": 30_000, "reduces": 30_000}),
        ("one_to_several", {"clients": 60_000}),
    ],
)
def test_a_workload_of_too_many_flows_is_refused(matrix: str, params: dict[str, int]) -> None:
    """M7: 64 000 hosts, all to all, are four thousand million flows."""
    with pytest.raises(UsageError, match="but the limit is"):
        matrices.build(matrix, topos.build("star", {"n": 64_000}), params, 1)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A folder beside the results whose files have the names of a point's."""
    folder = tmp_path / "secret"
    folder.mkdir()
    for name in ("goodput.csv.gz", "remarks.csv.gz"):
        (folder / name).write_text("PRIVATE")
    return folder


def exchange(point: Path, secret: Path) -> None:
    """Put a link in the place of the folder with samples."""
    (point / "samples").rename(point.with_name("moved"))
    (point / "samples").symlink_to(secret)


def test_an_export_has_only_what_the_folder_has(
    results: Path, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M1: a folder that became a link while it was packed brought files from elsewhere into the archive."""
    listed = contents.contents(results / EXPERIMENT)
    exchange(victim_of(results), secret)
    monkeypatch.setattr(contents, "contents", lambda _folder: listed)
    with pytest.raises(StoreError, match=r"samples/goodput\.csv\.gz: "):
        contents.export(results / EXPERIMENT, tmp_path / "out.zip", True, "1")
    assert not (tmp_path / "out.zip").exists()


def test_a_packed_point_has_only_what_its_folder_has(
    results: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M1: the same in what the worker of a cluster sends."""
    point = victim_of(results)
    listed = files.walk(point)
    exchange(point, secret)
    monkeypatch.setattr(files, "walk", lambda _folder: listed)
    with pytest.raises(StoreError):
        pack(point)
    monkeypatch.undo()
    assert b"PRIVATE" not in pack(point).values() and "run.json" in pack(point)


def test_deep_folders_of_a_point_are_listed_exported_and_removed(results: Path, tmp_path: Path) -> None:
    """M1, L10: 3000 nested folders in a point, in its raw files, and beside it."""
    point = victim_of(results)
    for folder in (point, point / "raw", results / EXPERIMENT / "foreign"):
        folder.mkdir(exist_ok=True)
        nest(folder)
    options = ["--results", str(results)]
    done = CliRunner().invoke(main, ["export", EXPERIMENT, *options, "--output", str(tmp_path / "out.zip")])
    assert done.exit_code == 0, done.output
    assert not any("ddd" in name for name in zipfile.ZipFile(tmp_path / "out.zip").namelist())
    assert len(scan(results / EXPERIMENT).points) == 3
    assert CliRunner().invoke(main, ["results", *options]).exit_code == 0
    done = CliRunner().invoke(main, ["results", *options, "remove", "--yes", EXPERIMENT])
    assert done.exit_code == 0 and "left there" in done.output, done.output
    assert sorted(path.name for path in point.iterdir()) == ["d" * 20, "f"]
    remove_tree(tmp_path / "results")  # pytest would recurse


MOST_MB = 200
"""Most memory that reading a damaged point of a few kilobytes may take, beside the imported modules."""
READ = """
import resource, sys
from pathlib import Path
from harness.results.store import scan
def used(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = used()
found = scan(Path(sys.argv[1]))
for point in found.points:
    for name in point.samples:
        try: point.sample(name)
        except Exception as error: print(type(error).__name__, error)
for error in found.broken: print(type(error).__name__, error)
print(used() - before)
"""


def read_apart(experiment: Path) -> tuple[list[str], int]:
    """Read all points and samples in a new process; return one line per error, and the memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", READ, experiment],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=ROOT,
    )
    *errors, used_mb = done.stdout.splitlines()
    return errors, int(used_mb)


def promise(point: Path, rows: int, size_bytes: int) -> None:
    """Let run.json promise tables of so many rows and bytes."""
    run = json.loads((point / "run.json").read_text())
    for content in run["tables"].values():
        content |= {"rows": rows, "size_bytes": size_bytes}
    (point / "run.json").write_text(json.dumps(run))


def sparse(file: Path) -> None:
    os.truncate(file, (1 << 30) - 1)


def sparse_and_compressed(file: Path) -> None:
    packer = zlib.compressobj(9, wbits=31)
    with file.open("wb") as out:
        out.write(packer.compress(b"t_s,flow,mbps\n"))
        for _ in range(400):
            out.write(packer.compress(b"0.5,0,1.5\n" * 100_000))
        out.write(packer.flush())
    os.truncate(file, 1 << 30)


def long_texts(file: Path) -> None:
    with gzip.open(file, "wb") as out:
        out.write(b"t_s,busy_pct,note\n")
        for _ in range(250):
            out.write((b"1,2," + b"x" * 3000 + b"\n") * 1000)


def one_long_text(file: Path) -> None:
    with gzip.open(file, "wb") as out:
        out.write(b"t_s,busy_pct,note\n" + b"1,2," + b"x" * 100_000 + b"\n" + b"1,2,y\n" * 262_142)


def long_line(file: Path) -> None:
    with gzip.open(file, "wb") as out:
        for _ in range(500):
            out.write(b"," * (1 << 20))


TABLES: dict[Callable[[Path], None], str] = {
    sparse: "flows.csv",
    sparse_and_compressed: "samples/goodput.csv.gz",
    long_texts: "samples/remarks.csv.gz",
    one_long_text: "samples/remarks.csv.gz",
    long_line: "samples/goodput.csv.gz",
}


@pytest.mark.parametrize("spoil", TABLES)
def test_a_table_costs_what_it_stores(results: Path, spoil: Callable[[Path], None]) -> None:
    """M2: a sparse `flows.csv` of 8 kB took 5.2 GB and 66 s, samples of 1 MB took 8 GB and 43 s."""
    promise(victim_of(results), 262_143, (1 << 30) - 1)
    spoil(victim_of(results) / TABLES[spoil])
    errors, used_mb = read_apart(results / EXPERIMENT)
    assert used_mb < MOST_MB and errors and all("Error reading" in error for error in errors), (
        used_mb,
        errors,
    )


@pytest.mark.parametrize("text", ["[" + "[]," * 20_000_000 + "[]]", "\0" * 60_000_000])
def test_a_json_file_costs_what_it_stores(results: Path, text: str) -> None:
    """M2: a list of empty lists takes 30 times the memory of its text."""
    for name in ("run.json", "../figures/full.json"):
        file = victim_of(results) / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    errors, used_mb = read_apart(results / EXPERIMENT)
    assert used_mb < 4 * MOST_MB and len(errors) == 1 and "it is truncated or not JSON" in errors[0]


def test_a_table_of_many_blocks_is_read_whole(tmp_path: Path) -> None:
    rows = [dataclasses.replace(flow_row(n, n / 7), src=f"h{n % 300}") for n in range(20_000)]
    text = tables.rows_bytes(FlowRow, rows)
    content = Content.of(len(rows), text)
    (tmp_path / "flows.csv").write_bytes(text)
    assert tables.read_rows(tmp_path / "flows.csv", FlowRow, content) == rows
    table = Table.from_rows(("t_s", "flow"), [(n / 3, n) for n in range(100_000)])
    of_table = tables.table_bytes(table)
    (tmp_path / "t.csv.gz").write_bytes(tables.packed(of_table))
    found = tables.read_table(tmp_path / "t.csv.gz", Content.of(len(table), of_table))
    assert all((found[name] == table[name]).all() for name in table.columns)
    (tmp_path / "flows.csv").write_bytes(text[:-300])
    with pytest.raises(StoreError, match=r"bytes where run\.json promises"):
        tables.read_rows(tmp_path / "flows.csv", FlowRow, content)
