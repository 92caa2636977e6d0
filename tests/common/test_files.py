"""Files that are written whole or not at all, names of files, lines and lists in options."""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ccp.loading import MAX_FILE_BYTES, text_of
from common import files
from common.errors import StoreError, UsageError
from common.files import OWNER, remove_tree, write_new
from common.lines import LineReader, Lines
from common.processes import side_by_side
from common.text import three_digits
from harness.options import user_files
from harness.options.user_files import expanded

WRITER = """
import sys, time
from pathlib import Path
from common import files
aside = files.open_aside(Path(sys.argv[1]), "point")
(aside.path / "half").write_text("x")
print(aside.path, flush=True)
time.sleep(60)
"""


def start_writer(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    return writer, Path(writer.stdout.readline().strip())


def test_a_live_writer_keeps_its_folder_and_a_killed_one_does_not(tmp_path: Path) -> None:
    writer, aside = start_writer(tmp_path)
    try:
        assert files.remove_abandoned(tmp_path) == []
        assert (aside / OWNER).read_text().split()[0] == str(writer.pid)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert writer.stdout is not None
        writer.stdout.close()
    assert files.remove_abandoned(tmp_path) == [aside.name]
    assert list(tmp_path.iterdir()) == []


def test_a_pid_taken_by_another_process_does_not_protect_the_dead(tmp_path: Path) -> None:
    stale = tmp_path / f"{files.TMP_PREFIX}old"
    stale.mkdir()
    (stale / OWNER).write_text(f"{os.getpid()}\n")
    assert files.remove_abandoned(tmp_path) == [stale.name]


def test_without_locks_the_pid_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_handle: int, _operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    mine = files.open_aside(tmp_path, "mine")
    dead = tmp_path / f"{files.TMP_PREFIX}dead"
    dead.mkdir()
    place = files.owner_text().decode().partition(" ")[2]
    (dead / OWNER).write_text(f"4194304999 {place}")
    elsewhere = tmp_path / f"{files.TMP_PREFIX}elsewhere"
    elsewhere.mkdir()
    (elsewhere / OWNER).write_text("4194304999 another-boot 4026531836\n")
    assert files.remove_abandoned(tmp_path) == [dead.name], "a pid of another machine is not judged here"
    (elsewhere / OWNER).unlink()
    assert files.remove_abandoned(tmp_path) == [elsewhere.name]
    files.discard(mine)
    assert [path.name for path in tmp_path.iterdir()] == [files.LOCK]


def test_only_unfinished_things_are_removed(tmp_path: Path) -> None:
    (tmp_path / "k4-point").mkdir()
    (tmp_path / ".hidden").write_text("")
    (tmp_path / f"{files.TMP_PREFIX}summary.csv-x").write_text("half")
    assert files.remove_abandoned(tmp_path) == [".tmp-summary.csv-x"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [".hidden", "k4-point"]


def test_replacing_a_file_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "summary.csv"
    files.replace_file(target, b"one")
    files.replace_file(target, b"two")
    assert target.read_bytes() == b"two"

    def interrupted(path: Path, data: bytes) -> None:
        path.write_bytes(data[:1])
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.replace_file(target, b"three")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"two"]


def over_nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lock as NFS does: exclusively only what is open for writing, so never a folder (flock(2))."""
    really = fcntl.flock

    def flock(handle: int, operation: int) -> None:
        writable = fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE in {os.O_WRONLY, os.O_RDWR}
        if operation & fcntl.LOCK_EX and not writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        really(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)


def test_over_nfs_owners_and_folders_are_locked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over_nfs(monkeypatch)
    monkeypatch.setattr(files, "LOCK_S", 0.2)
    mine = files.open_aside(tmp_path, "mine")
    assert files.remove_abandoned(tmp_path) == [], "its writer lives"
    with (
        files._alone_in(tmp_path),
        pytest.raises(StoreError, match=r"another process has held its lock for 0\.2 s"),
        files._alone_in(tmp_path),
    ):
        pytest.fail("two at once")
    files.discard(mine)
    assert [path.name for path in tmp_path.iterdir()] == [files.LOCK]


def test_two_that_add_to_one_file_lose_nothing(tmp_path: Path) -> None:
    target, each = tmp_path / "list", 25

    def add(word: str) -> None:
        for number in range(each):

            def longer(line: str = f"{word}{number}\n") -> bytes:
                before = target.read_text() if target.exists() else ""
                return f"{before}{line}".encode()

            files.update_file(target, longer)

    side_by_side([functools.partial(add, word) for word in "abc"])
    assert sorted(target.read_text().split()) == sorted(f"{w}{n}" for w in "abc" for n in range(each))


@pytest.mark.parametrize("moment", range(6))
def test_a_kill_amid_a_replacement_in_steps_keeps_a_whole_folder(tmp_path: Path, moment: int) -> None:
    """As on file systems that cannot swap names: the process dies before its system call number `moment`."""
    for name in ("point", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "whose").write_text(name)
    child = os.fork()
    if child == 0:
        _die_before_call(moment)
        files.in_two_steps(tmp_path / "new", tmp_path / "point")
        os._exit(0)
    os.waitpid(child, 0)
    files.recover(tmp_path)
    assert (tmp_path / "point" / "whose").read_text() in {"point", "new"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def _die_before_call(moment: int) -> None:
    """Let this process kill itself at its rename, fsync or removal number `moment`, from 0."""
    left = iter(range(moment, -1, -1))

    def dying(call: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return counted

    for name in ("rename", "fsync", "unlink", "rmdir"):
        setattr(os, name, dying(getattr(os, name)))


def test_what_another_process_removes_meanwhile_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    for name in ("flows.csv", "ports.csv"):
        (folder / name).write_text("")
    unlink = os.unlink

    def twice(*args: Any, **kwargs: Any) -> None:
        unlink(*args, **kwargs)
        unlink(*args, **kwargs)

    monkeypatch.setattr(os, "unlink", twice)
    remove_tree(folder)
    assert not folder.exists()


def test_a_folder_that_stays_locked_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOCK_S", 0.2)
    holder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match=r"another process has held its lock for 0\.2 s"):
            files.replace_file(tmp_path / "file", b"new")
        assert not (tmp_path / "file").exists()
    finally:
        os.close(holder)
    files.replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_nothing_that_is_there_already_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    for there in ("link", "other"):
        with pytest.raises(FileExistsError):
            files.write_bytes(tmp_path / there, b"new")
    files.replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "other").read_text() == "kept"
    assert (tmp_path / "link").read_bytes() == b"new"
    assert not (tmp_path / "link").is_symlink()


READERS: dict[str, Callable[[Path], object]] = {
    "algorithm": text_of,
    "link trace": lambda path: user_files.link_trace_of("--link-trace", f"@{path}"),
    "sizes": lambda path: expanded(f"pairs:60:sizes=@{path}"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_not_waited_for_and_a_device_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # root would not read /dev/zero, which others may write
    os.mkfifo(tmp_path / "mine.py")
    for path in (tmp_path / "mine.py", Path("/dev/zero")):
        with pytest.raises(UsageError, match="it is not a regular file"):
            READERS[reader](path)


def test_a_link_leads_to_its_file(tmp_path: Path) -> None:
    sizes, link = tmp_path / "sizes.txt", tmp_path / "link.txt"
    sizes.write_text("8760 0.5\n87600 1\n")
    link.symlink_to(sizes)
    assert expanded(f"pairs:60:sizes=@{link}") == expanded(f"pairs:60:sizes=@{sizes}")


def test_only_a_new_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    write_new("--output new", tmp_path / "new", b"text")
    assert (tmp_path / "new").read_bytes() == b"text"
    for name, why in (("mine", "it exists; name another"), ("link", "it exists"), ("no/such", "No such")):
        with pytest.raises(UsageError, match=f"^--output x: .*{why}"):
            write_new("--output x", tmp_path / name, b"text")
    assert (tmp_path / "mine").read_text() == "mine"


def test_an_algorithm_has_a_size(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(UsageError, match="larger than"):
        text_of(tmp_path / "mine.py")


Pipe = tuple[LineReader, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    yield LineReader(read), write
    os.close(read)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b"one\ntwo\n"], [[b"one", b"two"]]),
        ([b"on", b"e\ntw", b"o\n"], [[], [b"one"], [b"two"]]),
        ([b"\n", b"\n\n"], [[b""], [b"", b""]]),
        ([b"one", b"\n"], [[], [b"one"]]),
    ],
)
def test_lines_are_whole_however_they_arrive(
    pipe: Pipe, pieces: list[bytes], expected: list[list[bytes]]
) -> None:
    reader, write = pipe
    got = []
    for piece in pieces:
        os.write(write, piece)
        got.append(reader.read())
    os.close(write)
    assert got == expected
    assert reader.read() is None


def test_an_unfinished_line_ends_with_its_pipe(pipe: Pipe) -> None:
    reader, write = pipe
    os.write(write, b"half a li")
    os.close(write)
    assert reader.read() == []
    assert reader.read() is None


def test_a_long_line_takes_linear_time(pipe: Pipe) -> None:
    """30 MB in pieces of 4 kB: 0.1 s. Copying the beginning at every piece moves 115 GB and takes minutes."""
    reader, write = pipe
    piece, pieces = b"x" * 4096, (30 << 20) // 4096
    began = time.process_time()
    for _ in range(pieces):
        os.write(write, piece)
        assert reader.read() == []
        assert time.process_time() - began < 5.0, "quadratic"
    os.write(write, b"\nnext\n")
    os.close(write)
    line, following = reader.read() or (b"", b"")
    assert (len(line), following) == (30 << 20, b"next")


def test_pieces_without_a_pipe_become_the_same_lines() -> None:
    lines = Lines()
    assert [lines.take(piece) for piece in (b"on", b"e\ntwo\nth", b"ree\n")] == [
        [],
        [b"one", b"two"],
        [b"three"],
    ]
    lines.take(b"incomplete")
    lines.drop()
    assert lines.take(b"next\n") == [b"next"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01628, "0.0163"), (91.73, "91.7"), (999.4, "999"), (999.6, "1000"), (4163, "4163"),
        (-3713.2, "-3713"),
    ],
)  # fmt: skip
def test_large_numbers_have_no_exponent(value: float, text: str) -> None:
    assert three_digits(value) == text
