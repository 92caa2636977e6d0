"""A user's distribution of flow sizes: what a file says, and which line is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import UsageError
from harness.options.parsers import named_workloads
from harness.options.user_files import expanded
from workloads import sizes


def test_the_numbers_of_a_file_become_part_of_the_workload(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("# bytes, share\n1000 0.25\n\n2000 0.5  # half\n4000 1\n")
    (workload,) = named_workloads("--workload", (f"pairs:60:sizes=@{path}",))
    assert workload.params == {"load": 60, "sizes": "cdf-1000x0-1000x0.25-2000x0.5-4000x1"}
    found = sizes.parse(str(workload.params["sizes"]))
    assert found.at(0.2) == 1000
    assert found.mean_bytes == 0.25 * 1000 + 0.25 * 1500 + 0.5 * 3000
    path.unlink()
    assert named_workloads("--workload", (f"pairs:60:sizes={workload.params['sizes']}",)) == (workload,)


def test_small_shares_survive() -> None:
    text = sizes.written([(1, 0.0), (5, 0.00001), (9, 1.0)])
    assert sizes.parse(sizes.INLINE + text).points == ((1, 0.0), (5, 0.00001), (9, 1.0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1000 0.5\n2000\n", "line 2: '2000' is not a size"),
        ("1000 0.5\n\nbig 1\n", "line 3: 'big 1' is not a size"),
        ("1000 0.5\n2000 1.5\n", "line 2: shares are from 0 to 1"),
        ("0 0.5\n2000 1\n", "line 1: sizes are from 1"),
        ("3000 0.5\n2000 1\n", "line 2: sizes and shares must not fall"),
        ("1000 0.5\n2000 0.9\n", "the last one with a share of 1"),
        ("", "two points or more"),
        ("".join(f"{n} {n / 40}\n" for n in range(1, 41)), "give 30 or fewer"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        expanded(f"pairs:60:sizes=@{path}")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        expanded(f"pairs:60:sizes=@{tmp_path / 'none'}")
