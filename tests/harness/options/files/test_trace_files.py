"""A user's flows: `--workload trace:flows.csv` gives the flows of the file, or one line that says where."""

from __future__ import annotations

from pathlib import Path

import pytest

import topos
from common.errors import UsageError
from harness.options.options import Defaults, UserOptions, resolve
from harness.options.user_files import trace_of
from workloads import matrices
from workloads.flow import Flow, Traffic
from workloads.trace import written

TREE = topos.build("fat_tree", {"k": 4})
HEAD = "start_s,src,dst,bytes\n"
GOOD = HEAD + "0.5,p0e0h0,p1e0h0,3000\n0,p1e0h0,p0e0h0,1000\n"


def read(folder: Path, text: str) -> tuple[Flow, ...]:
    path = folder / "flows.csv"
    path.write_text(text)
    spec = trace_of(str(path))
    return matrices.build(spec.matrix, TREE, spec.params, 1, Traffic(2.0, 100.0))


def test_the_flows_are_those_of_the_file(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD) == (
        Flow("p1e0h0", "p0e0h0", 1000, 0.0), Flow("p0e0h0", "p1e0h0", 3000, 0.5),
    )  # fmt: skip
    turned = "dst, src, bytes, start_s\r\np0e0h0, p1e0h0, 1000, 0\r\n\r\n"
    assert read(tmp_path, turned) == (Flow("p1e0h0", "p0e0h0", 1000),)


def test_labels_name_the_file_and_not_its_flows(tmp_path: Path) -> None:
    read(tmp_path, GOOD)
    spec = trace_of(str(tmp_path / "flows.csv"))
    assert matrices.label(spec.matrix, spec.params) == "trace:flows.csv"
    assert matrices.words(spec.matrix, spec.params) == "trace flows.csv"


def test_a_trace_has_no_warm_up_unless_it_is_asked_for(tmp_path: Path) -> None:
    read(tmp_path, GOOD)
    text = f"trace:{tmp_path / 'flows.csv'}"
    defaults = Defaults((4,), ("one_to_one",), (1,))
    for engine in ("simulator", "mininet"):
        options = resolve(UserOptions.of(workload=text, engine=engine), defaults)
        assert options.base.warmup_s == 0
        assert not options.window.warmup
    assert resolve(UserOptions.of(workload=text, warmup="3"), defaults).base.warmup_s == 3


BAD = [
    ("", "line 1: its columns are ''"),
    ("start,src,dst,bytes\n", "line 1: its columns are 'start,src,dst,bytes'; write start_s,"),
    (HEAD, "it has no flows"),
    (GOOD + "1,p0e0h0,p1e0h0\n", r"line 4: 3 values, not 4"),
    (GOOD + "\n1,p0e0h0,p1e0h0,9\n", r"line 4: 0 values, not 4"),
    (GOOD + "x,p0e0h0,p1e0h0,9\n", "line 4: start_s is 'x', not a number"),
    (GOOD + "nan,p0e0h0,p1e0h0,9\n", "line 4: start_s is 'nan'"),
    (GOOD + "-1,p0e0h0,p1e0h0,9\n", "line 4: start_s is -1"),
    (GOOD + "1,p0e0h0,p1e0h0,0\n", "line 4: bytes is 0"),
    (GOOD + "1,p0e0h0,p1e0h0,1.5\n", "line 4: bytes is 1.5"),
    (GOOD + "1,p0-e0,p1e0h0,9\n", "line 4: src is 'p0-e0'"),
    (GOOD + "1,p0e0h0,p0e0h0,9\n", "line 4: p0e0h0 sends to itself"),
    (GOOD + "1,p0e0h0,p9e0h0,9\n", "line 4: the network has no host p9e0h0: did you mean"),
    (
        GOOD + "2,p0e0h0,p1e0h0,9\n",
        r"line 4: the flow starts after 2 s, and the run ends after 2 s: give --s",
    ),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_mistake_is_one_line_with_its_number(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        read(tmp_path, text)
    assert "\n" not in str(error.value)


def test_what_is_no_text_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_bytes(b"\xff\xfe")
    for name, words in (("flows.csv", "not a text file"), ("nope.csv", "No such file"), (".", "directory")):
        with pytest.raises(UsageError, match=words):
            trace_of(str(tmp_path / name))


def test_a_damaged_stored_trace_is_refused() -> None:
    for flows in ("1,a,b", "x,a,b,1", "0,a,a,1", "0,a,b,-1"):
        with pytest.raises(UsageError, match="its text is damaged"):
            matrices.build("trace", TREE, {"name": "t", "flows": flows}, 1, Traffic(2.0, 100.0))
    with pytest.raises(UsageError, match="name a file of flows"):
        matrices.build("trace", TREE, {}, 1, Traffic(2.0, 100.0))


def test_only_what_a_trace_holds_is_written() -> None:
    assert written([Flow("a", "b", 5, 1)]) == "1.0,a,b,5"
    with pytest.raises(UsageError, match="flow 1 from a"):
        written([Flow("a", "b", plain=True)])
    with pytest.raises(UsageError, match="1 to 50000 flows"):
        written([])
