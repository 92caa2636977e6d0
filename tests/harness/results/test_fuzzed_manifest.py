"""A figure's manifest with any content: its names, or one line that says what to do."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import StoreError
from harness.results import store

FIGURE = "some-figure"
GOOD = {"format": "refabric-figure", "schema": 1, "points": ["a-000000000000", "b-111111111111"]}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from([10**400, 2**63, "../../x", "\x1b[31m", "\ud800", "refabric-figure"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
ANY = settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def written(directory: Path, content: bytes) -> Path:
    path = directory / store.MANIFESTS / f"{FIGURE}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def check(directory: Path) -> None:
    """Check that it is read or refused in one line, and that the next run replaces what was refused."""
    try:
        before = store.read_manifest(directory, FIGURE)
    except StoreError as error:
        assert "\n" not in str(error)
        assert "run the figure again, its finished points are kept" in str(error)
        before = frozenset()
    assert all(isinstance(name, str) for name in before)
    store.add_to_manifest(directory, FIGURE, ["new-222222222222"])
    assert store.read_manifest(directory, FIGURE) == before | {"new-222222222222"}


@ANY
@given(place=st.sampled_from([*GOOD, "points.0"]), value=VALUES)
def test_another_value_anywhere(tmp_path: Path, place: str, value: Any) -> None:
    data: dict[str, Any] = copy.deepcopy(GOOD)
    if place == "points.0":
        data["points"][0] = value
    else:
        data[place] = value
    written(tmp_path, json.dumps(data).encode())
    check(tmp_path)


@ANY
@given(content=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes(tmp_path: Path, content: bytes) -> None:
    written(tmp_path, content)
    check(tmp_path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(json.dumps(GOOD))
    path = written(tmp_path, b"")
    path.unlink()
    path.symlink_to(elsewhere)
    with pytest.raises(StoreError):
        store.read_manifest(tmp_path, FIGURE)
    store.add_to_manifest(tmp_path, FIGURE, ["new-222222222222"])
    assert json.loads(elsewhere.read_text()) == GOOD
