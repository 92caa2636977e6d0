"""What two folders must agree in: the verdicts and exit codes of `refabric compare`."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.compare.compare import Disagreement, DisagreementKind, Side, compare, disagreements
from harness.results.point_results import PointResult
from model.spec import LinkSpec
from tests.support.edited_results import DAMAGE, EDITED, copied, edit_json, edit_rows, refabric, simulated
from tests.support.judged_points import judged, stored
from tests.support.stored_points import spec_of


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("original"))


def verdicts(a: Path, b: Path) -> list[dict[str, Any]]:
    """Return the disagreements that `compare --json` writes; check that the exit code is theirs."""
    done = refabric("compare", a, b, "--json")
    events = [json.loads(line, parse_constant=pytest.fail) for line in done.stdout.splitlines()]
    found = [event for event in events if event["event"] == "disagreement"]
    assert events[-1]["event"] == "done"
    assert events[-1]["exit_code"] == done.exit_code == (1 if found else 0)
    assert events[-1]["disagreements"] == len(found)
    assert refabric("compare", a, b).exit_code == done.exit_code
    return found


def edited(original: Path, results: Path) -> tuple[Path, Path]:
    """Return a copy of the experiment, and the folder of the point to edit."""
    folder = copied(original, results)
    (point,) = folder.glob(EDITED)
    return folder, point


def kinds(found: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["kind"], one["side"]) for one in found]


def test_a_copy_agrees(original: Path, tmp_path: Path) -> None:
    folder = copied(original, tmp_path)
    assert verdicts(original, folder) == []
    done = refabric("compare", original, folder, "--json")
    assert json.loads(done.stdout.splitlines()[-1])["equal_in_virtual_time"] == 5


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_point_of_either_side(original: Path, tmp_path: Path, damage: str) -> None:
    folder, point = edited(original, tmp_path)
    DAMAGE[damage][0](point)
    (one,) = verdicts(original, folder)
    assert (one["kind"], one["side"], one["point"]) == ("damaged", "B", point.name)
    assert (DisagreementKind.DAMAGED, "A") in kinds(verdicts(folder, original))


def test_a_folder_without_any_run_json(original: Path, tmp_path: Path) -> None:
    folder, _ = edited(original, tmp_path)
    for run in folder.glob("*/run.json"):
        run.unlink()
    assert {*kinds(verdicts(original.parent, tmp_path))} == {("damaged", "B")}


@pytest.mark.parametrize("which", [EDITED, "*reference*"])
def test_a_point_that_is_missing_in_b(original: Path, tmp_path: Path, which: str) -> None:
    folder = copied(original, tmp_path)
    (point,) = folder.glob(which)
    shutil.rmtree(point)
    assert ("missing", "B") in kinds(verdicts(original, folder))
    (folder / "summary.csv").unlink()
    assert kinds(verdicts(original, folder)) == [("missing", "B")]
    assert verdicts(folder, original) == [], "B may have more"


@pytest.mark.parametrize(
    "column", ["status", "goodput_pct_mean", "goodput_mbps_mean", "retransmits", "drops"]
)
def test_an_edited_summary(original: Path, tmp_path: Path, column: str) -> None:
    folder, point = edited(original, tmp_path)
    edit_rows(folder / "summary.csv", lambda row: {column: "99"} if row["point"] == point.name else {})
    (one,) = verdicts(original, folder)
    assert (one["kind"], one["side"], one["point"]) == ("summary", "B", point.name)
    assert kinds(verdicts(folder, original)) == [("summary", "A")]


def consistent(point: Path) -> None:
    """Edit a point so that its own files agree with each other."""
    edit_rows(
        point / "flows.csv", lambda _: {"goodput_mbps": "80.0", "bytes_received": str(80 * 500_000 // 8)}
    )
    edit_json(point / "origin.json", lambda data: data["attempts"][0].update(goodput_mbps=80.0))


def a_metric(point: Path) -> None:
    edit_json(point / "run.json", lambda run: run["metrics"].update(timeouts=123))


def a_suspect(point: Path) -> None:
    late = [{"kind": "late", "text": "late"}]
    edit_json(point / "run.json", lambda run: run.update(status="suspect", reasons=late))
    edit_json(point / "origin.json", lambda data: data["attempts"][0].update(status="suspect"))


def a_sample(point: Path) -> None:
    other = next(point.parent.glob("*mptcp8*-s1-*"))
    shutil.copy(other / "samples" / "goodput.csv.gz", point / "samples" / "goodput.csv.gz")


@pytest.mark.parametrize(
    ("edit", "kind"),
    [(consistent, "damaged"), (a_metric, "unequal"), (a_suspect, "unequal"), (a_sample, "damaged")],
)
def test_points_in_virtual_time_must_be_equal(
    original: Path, tmp_path: Path, edit: Callable[[Path], None], kind: str
) -> None:
    folder, point = edited(original, tmp_path)
    (folder / "summary.csv").unlink()
    edit(point)
    (one,) = verdicts(original, folder)
    assert (one["kind"], one["point"]) == (kind, point.name)


def test_another_revision_is_named(original: Path, tmp_path: Path) -> None:
    folder, point = edited(original, tmp_path)
    edit_json(point / "origin.json", lambda data: data["provenance"].update(revision="0123456789ab"))
    assert verdicts(original, folder) == [], "an equal result of another revision"
    a_metric(point)
    (one,) = verdicts(original, folder)
    assert "0123456789ab in B" in one["what"]


def test_a_hand_in_without_samples_agrees(original: Path, tmp_path: Path) -> None:
    folder, _ = edited(original, tmp_path)
    for sample in folder.glob("*/samples/*"):
        sample.unlink()
    assert verdicts(original, folder) == []
    edit_json(next(folder.glob(EDITED)) / "origin.json", lambda data: data["cost"].update(simulation_cpu_s=9))
    assert verdicts(original, folder) == [], "the machine's cost"


def real(means: Sequence[float], **changes: Any) -> list[PointResult]:
    """Return points of real hosts, one seed per mean."""
    specs = [dataclasses.replace(spec_of(seed=n), **changes) for n in range(1, len(means) + 1)]
    return [stored(spec, [mean - 0.5, mean + 0.5]) for spec, mean in zip(specs, means, strict=True)]


def between(a: Sequence[PointResult], b: Sequence[PointResult]) -> list[Disagreement]:
    sides = (Side(Path(name), tuple(judged(points)), ()) for name, points in (("a", a), ("b", b)))
    return disagreements(compare(*sides))


SIX = [2.0, 2.2, 2.1, 2.4, 2.3, 2.2]


def test_real_time_may_differ_by_chance_and_no_more() -> None:
    assert between(real(SIX), real([2.1, 2.1, 2.2, 2.3, 2.4, 2.1])) == []
    assert [one.kind for one in between(real(SIX), real([mean + 0.5 for mean in SIX]))] == [
        DisagreementKind.CHANGED
    ]
    assert between(real([2.0]), real([2.9])) == [], "one seed has no uncertainty"


def test_many_intervals_hold_together() -> None:
    """A change that is just beyond its own 95 % interval is no disagreement among ten."""
    changes = (0.10, 0.0, 0.09, 0.02, 0.07, 0.01)
    later = [mean + change for mean, change in zip(SIX, changes, strict=True)]
    rates = (2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0)
    others = [point for rate in rates for point in real(SIX, link=LinkSpec(rate))]
    assert [one.kind for one in between(real(SIX), real(later))] == [DisagreementKind.CHANGED]
    assert between([*real(SIX), *others], [*real(later), *others]) == []


def test_what_is_compared_may_differ() -> None:
    assert between(real(SIX), real([mean + 0.5 for mean in SIX], seconds=20.0)) == []


def test_a_seed_of_a_setting_in_real_time_may_not_be_missing() -> None:
    found = between(real(SIX), real(SIX[:4]))
    assert [(one.kind, one.side) for one in found] == [(DisagreementKind.MISSING, "B")] * 2
    assert between(real(SIX[:4]), real(SIX)) == []


def test_other_seeds_throughout_are_compared_only_where_nothing_must_be_equal() -> None:
    first = real(SIX)
    later = [dataclasses.replace(p, spec=dataclasses.replace(p.spec, seed=p.spec.seed + 6)) for p in first]
    assert between(first, later) == []
    in_virtual_time = [
        [dataclasses.replace(p, spec=dataclasses.replace(p.spec, engine="simulator")) for p in side]
        for side in (first, later)
    ]
    assert [one.kind for one in between(*in_virtual_time)].count(DisagreementKind.MISSING) == 6
