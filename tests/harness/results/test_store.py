"""The store: exact round trips, whole points or none, damage that costs only one point."""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import gzip
import json
import math
import os
import re
from pathlib import Path

import pytest

from common import files
from common.errors import StoreError, UsageError
from harness.metrics.measures import kept
from harness.results import tables
from harness.results.point_results import PointResult
from harness.results.run_json import sample_path
from harness.results.store import (
    Store,
    finite,
    load,
    load_point,
    point_name,
    row_metrics,
    scan,
    store_readings,
)
from model.reasons import COMPLETION, LATE, RTT, Fault, Reason
from model.result import SAMPLE_COLUMNS, Status, Table
from model.spec import TopologySpec, WorkloadSpec
from tests.support.stored_points import EXPERIMENT, leftovers, put, result_of, spec_of


def test_a_point_comes_back_as_it_was(store: Store) -> None:
    spec, result = spec_of(8), result_of([1.25, 4.0 / 3.0])
    put(store, spec, result)
    (point,) = load(store.directory)
    assert (point.spec, point.status, point.hosts, point.elapsed_s) == (spec, Status.OK, 16, 60.25)
    assert (point.flows, point.ports) == (result.flows, result.ports)
    assert point.provenance == result.provenance
    assert point.metrics == {**result.metrics, **row_metrics(spec, result.flows, result.ports)}
    for name, table in result.samples.items():
        assert point.sample(name) == table
    files_of_it = ["flows.csv", "ports.csv", "raw", "run.json", "samples"]
    assert sorted(p.name for p in point.path.iterdir()) == files_of_it
    assert (point.path / "raw" / "iperf3.json").exists()


def test_the_name_says_what_the_point_is() -> None:
    assert re.fullmatch(r"k4-one_to_one-mptcp8-reno-5mbps-s1-[0-9a-f]{12}", point_name(spec_of(8)))
    assert re.fullmatch(
        r"k4-one_to_one-tcp-reno-2.5mbps-s3-[0-9a-f]{12}", point_name(spec_of(seed=3, rate_mbps=2.5))
    )
    star = dataclasses.replace(spec_of(), topology=TopologySpec("star", {"n": 3}), engine="fake")
    assert point_name(star).startswith("fake-star3-one_to_one-tcp-")
    stride = dataclasses.replace(spec_of(), workload=WorkloadSpec("stride", {"i": 4}))
    assert point_name(stride).startswith("k4-stride_4-tcp-reno-")


def test_any_other_parameter_is_another_point() -> None:
    spec = spec_of()
    others = [
        dataclasses.replace(spec, **change)
        for change in (
            {"seed": 2}, {"seconds": 41.0}, {"warmup_s": 9.0}, {"routing": "ecmp"}, {"traffic": "iperf3"},
            {"dataplane": "ovs"}, {"engine": "fake"},
            {"link": dataclasses.replace(spec.link, queue_pkts=50)},
            {"link": dataclasses.replace(spec.link, delay_us=10.0)},
        )
    ]  # fmt: skip
    assert len({point_name(s) for s in [spec, *others]}) == len(others) + 1


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    folders = []
    for number in (1, 2):
        folders.append(put(Store.open(tmp_path / str(number), EXPERIMENT), spec_of(), result_of([1.0])).path)
    for one in sorted(folders[0].rglob("*")):
        if one.is_file():
            assert one.read_bytes() == (folders[1] / one.relative_to(folders[0])).read_bytes(), one.name


def test_nothing_is_left_of_a_point_given_up(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), store.writing(spec_of()) as writer:
        (writer.raw / "half").write_text("x")
        raise KeyboardInterrupt
    assert list(store.directory.iterdir()) == []


def test_a_failed_point_is_replaced(store: Store) -> None:
    put(store, spec_of(), result_of([], Status.FAILED, "no flow came up"))
    assert not load(store.directory)[0].finished
    put(store, spec_of(), result_of([2.0]))
    (point,) = load(store.directory)
    assert point.finished
    assert point.flows[0].goodput_mbps == 2.0
    assert leftovers(store.directory) == []


def test_exchange_on_file_systems_without_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class OldFileSystem:
        @staticmethod
        def renameat2(*_arguments: object) -> int:
            return -1

    put(store, spec_of(), result_of([1.0]))
    monkeypatch.setattr(ctypes, "CDLL", lambda *_a, **_k: OldFileSystem)
    monkeypatch.setattr(ctypes, "get_errno", lambda: errno.EINVAL)
    put(store, spec_of(), result_of([2.0]))
    assert [p.flows[0].goodput_mbps for p in load(store.directory)] == [2.0]
    assert leftovers(store.directory) == []


@pytest.mark.parametrize("allowed", range(6))
def test_a_full_disk_leaves_nothing_half_written(
    store: Store, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    put(store, spec_of(2), result_of([1.0]))
    written = []
    really = files.write_bytes

    def until_full(path: Path, data: bytes) -> None:
        written.append(path)
        if len(written) > allowed:
            path.write_bytes(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        really(path, data)

    monkeypatch.setattr(files, "write_bytes", until_full)
    if allowed >= 5:  # two samples, flows, ports, run.json: it all fits
        put(store, spec_of(), result_of([1.0]))
        return
    with pytest.raises(StoreError, match=r"writing .*No space left on device; free some space"):
        put(store, spec_of(), result_of([1.0]))
    assert [p.spec for p in load(store.directory)] == [spec_of(2)]
    assert leftovers(store.directory) == []


def test_a_scan_knows_what_is_finished_without_reading_tables(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, spec_of(1), result_of([1.0]))
    (store.directory / "charts").mkdir()
    (store.directory / "notes.txt").write_text("mine")
    put(store, spec_of(2), result_of([], Status.FAILED, "no flow came up"))
    damaged = put(store, spec_of(8), result_of([1.0])).path
    (damaged / "run.json").write_text("{")
    monkeypatch.setattr(tables, "read_rows", None)
    assert {(e.name, e.finished) for e in scan(store.directory).points} == {
        (point_name(spec_of(1)), True), (point_name(spec_of(2)), False),
    }  # fmt: skip
    assert any(point.goodput_mbps for point in scan(store.directory).points)
    assert scan(store.directory / "nothing-here").points == ()


def test_numbers_that_json_lacks_become_null(store: Store) -> None:
    result = dataclasses.replace(
        result_of([1.0]),
        metrics={"late_p99_us": math.nan, "cpu_busy_pct": 5.0},
        provenance={"load": [math.inf]},
    )
    point = put(store, spec_of(), result)
    assert "late_p99_us" not in point.metrics and point.metrics["cpu_busy_pct"] == 5.0
    assert point.provenance == {"load": [None]}
    json.loads((point.path / "run.json").read_text(), parse_constant=pytest.fail)
    assert finite({"a": (1, -math.inf)}) == {"a": [1, None]}


def test_samples_carry_neither_time_nor_name(store: Store) -> None:
    point = put(store, spec_of(), result_of([1.0]))
    data = (point.path / "samples" / "remarks.csv.gz").read_bytes()
    assert data[3] == 0, "no name and no extra fields"
    assert data[4:8] == bytes(4), "no time"
    assert gzip.decompress(data).decode().splitlines()[0] == "t_s,busy_pct,note"


def test_a_results_folder_that_cannot_be_read_is_the_users_choice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_folder: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(UsageError, match=r"reading .*Permission denied; .*--results DIR"):
        store.read()


def test_a_results_folder_that_is_a_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(UsageError, match=r"results.*(Not a directory|File exists).*--results"):
        Store.open(tmp_path / "results", EXPERIMENT)


def test_what_is_no_point_is_left_alone(store: Store) -> None:
    put(store, spec_of(), result_of([1.0]))
    (store.directory / "charts").mkdir()
    (store.directory / "notes.txt").write_text("mine")
    assert len(load(store.directory)) == 1
    assert load(store.directory.parent / "nothing-here") == []


def test_reasons_come_back_as_records(store: Store) -> None:
    late = Reason(LATE, "CPU: late", Fault.HYPERVISOR, (("late_p99_us", 4000.0),), (RTT, COMPLETION))
    put(store, spec_of(), dataclasses.replace(result_of([1.0], Status.SUSPECT), reasons=(late,)))
    put(store, spec_of(2), dataclasses.replace(result_of([1.0]), cautions=(late,)))
    suspect, doubted = (load_point(store.directory / point_name(spec_of(n))) for n in (1, 2))
    assert (suspect.reasons, suspect.cautions) == ((late,), ())
    assert (doubted.reasons, doubted.cautions) == ((), (late,))
    entries = {entry.name: entry.machine_attempts for entry in scan(store.directory).points}
    assert entries == {suspect.name: 1, doubted.name: 0}


def test_what_was_read_off_rows_is_kept_with_the_point(store: Store) -> None:
    read: list[str] = []

    def total(point: PointResult) -> float:
        read.append(point.name)
        return sum(flow.goodput_mbps for flow in point.flows)

    total_mbps = kept("total_mbps", total)
    point = load_point(put(store, spec_of(), result_of([1.0, 2.0])).path)
    assert total_mbps(point) == total_mbps(point) == 3.0
    assert store_readings([point]) == [point.name] == read
    again = load_point(point.path)
    assert total_mbps(again) == 3.0 and len(read) == 1
    assert store_readings([again]) == []
    assert again == point, "its digest and its metrics are those of before"
    stripped = dataclasses.replace(again, lost=("goodput",), readings={"total_mbps": 3.0, "other": None})
    assert store_readings([stripped]) == [], "samples may come back"


def test_what_was_read_without_a_damaged_table_is_not_kept(store: Store) -> None:
    length = kept("length", lambda point: None if (of := point.read_table("cpu")) is None else float(len(of)))
    columns = SAMPLE_COLUMNS["cpu"]
    rows = [(0.5, *[1.0] * (len(columns) - 1))] * 3
    result = dataclasses.replace(result_of([1.0]), samples={"cpu": Table.from_rows(columns, rows)})
    folder = put(store, spec_of(), result).path
    path = sample_path(folder, "cpu")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    point = load_point(folder)
    assert length(point) is None and store_readings([point]) == []
    path.write_bytes(whole)
    point = load_point(folder)
    assert length(point) == 3.0 and store_readings([point]) == [folder.name]


def test_what_was_read_off_rows_that_were_replaced_since_is_not_kept(store: Store) -> None:
    total_mbps = kept("total_mbps", lambda point: sum(flow.goodput_mbps for flow in point.flows))
    before = load_point(put(store, spec_of(), result_of([1.0, 2.0])).path)
    assert total_mbps(before) == 3.0
    after = load_point(put(store, spec_of(), result_of([4.0, 5.0])).path)
    assert after.path == before.path and store_readings([before]) == []
    assert total_mbps(load_point(after.path)) == 9.0
