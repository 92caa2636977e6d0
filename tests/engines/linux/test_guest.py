"""Linux in virtual time: the guest's program, and what is refused before it starts."""

from __future__ import annotations

import dataclasses
import os
import py_compile
import signal
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest

import topos
from ccp.names import OwnAlgorithm
from common.errors import DeadlineError, HostUnfitError, UsageError
from engines.linux import engine, guest
from engines.linux.engine import (
    LinuxEngine,
    check_congestion_controls,
    check_guest,
    check_objects,
)
from engines.linux.guest import (
    LAST_LINES,
    NO_BYTECODE,
    Console,
    Terminal,
    VirtualClock,
    check_machine,
    command,
    script,
    tcp_mem,
)
from engines.linux.kernel.store import Kernel
from engines.linux.launch import MEMORY, ROOT, launcher, supported
from model.congestion import COUPLED_DEFAULT
from model.flows import planned_flows
from model.spec import LinkSpec, NoiseSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.waiting import until


def spec(k: int, subflows: int, seed: int = 1) -> RunSpec:
    return RunSpec(
        LinkSpec(10),
        topology=TopologySpec("fat_tree", {"k": k}),
        transport=TransportSpec(subflows, "lia"),
        workload=WorkloadSpec("one_to_one"),
        engine="linux",
        traffic="native",
        seed=seed,
    )


def expected_mb(point: RunSpec) -> float:
    topology = topos.build(point.topology.kind, point.topology.params)
    return engine.expected_mb(point, topology, planned_flows(point, topology))


def test_the_command_line_names_no_path_but_the_kernels_own_and_depends_on_the_seed() -> None:
    first, second = (command(Path(kernel), 1024, 7) for kernel in ("/a/linux", "/somewhere/else/linux"))
    assert first[1:] == second[1:]
    assert not [word for word in first[1:] if "/a/" in word]
    assert {"mem=1024M", "ro", "time-travel=inf-cpu"} <= {*first}
    assert "rw" not in first
    other = command(Path("/a/linux"), 1024, 8)
    assert [(a, b) for a, b in zip(first, other, strict=True) if a != b] == [("rng_seed=7", "rng_seed=8")]


@pytest.mark.parametrize("terminal", [None, Terminal(live=True, rows=30, columns=100), Terminal(live=False)])
def test_process_1_is_a_valid_script_and_quotes_the_program(
    terminal: Terminal | None, tmp_path: Path
) -> None:
    text = script(["/a folder/python", "-c", "print('x; y')"], 1024, terminal)
    path = tmp_path / "init"
    path.write_text(text)
    subprocess.run(["sh", "-n", path], check=True, timeout=10)
    assert """'/a folder/python' -c 'print('"'"'x; y'"'"')'""" in text
    assert (">/dev/tty0" in text) == (terminal is not None)
    assert ("stty rows 30 columns 100" in text) == (terminal is not None and terminal.live)
    assert ("</run/point/commands" in text) == (terminal is not None and not terminal.live)
    assert "tmpfs /tmp" not in text, "a clone below /tmp stays visible"


@pytest.mark.parametrize("has_bytecode", [True, False])
def test_programs_use_no_byte_code_of_the_machine(has_bytecode: bool, tmp_path: Path) -> None:
    # A point had other bytes on a machine that had compiled refabric before.
    module = (tmp_path / "some_module").with_suffix(".py")
    module.write_text("")
    if has_bytecode:
        compiled = Path(cache_from_source(str(module)))
        assert py_compile.compile(str(module), cfile=str(compiled))
    exports = [line for line in script(["true"], 1024).splitlines() if line.startswith("export PYTHON")]
    load = "import some_module; print(some_module.__spec__.cached)"
    program = f"cd {tmp_path}; {'; '.join(exports)}; {sys.executable} -v -c '{load}'"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith(NO_BYTECODE)
    loaded = [line for line in done.stderr.splitlines() if "code object from" in line]
    assert any(line.endswith(module.name) for line in loaded)
    assert not [line for line in loaded if ".pyc" in line]


def test_sockets_of_all_hosts_may_have_half_of_the_memory() -> None:
    low, pressure, high = map(int, tcp_mem(1024).split())
    assert low < pressure == high == 1024 * 256 // 2


def test_memory_grows_with_hosts_and_subflows_and_leaves_headroom() -> None:
    small, wide, many = expected_mb(spec(4, 1)), expected_mb(spec(8, 1)), expected_mb(spec(8, 8))
    assert small < wide < many
    for expected in (small, wide, many):
        assert engine.guest_mb(expected) >= engine.HEADROOM * expected
        assert engine.guest_mb(expected) % engine.STEP_MB == 0


def test_memory_grows_with_samples() -> None:
    plain = spec(8, 8)
    sampled = dataclasses.replace(plain, sampling=SamplingSpec(queues_ms=10, sockets_ms=200))
    longer = dataclasses.replace(sampled, warmup_s=3 * plain.warmup_s, seconds=3 * plain.seconds)
    more = expected_mb(sampled) - expected_mb(plain)
    assert more > 50
    assert expected_mb(longer) - expected_mb(plain) == pytest.approx(3 * more)


def test_a_point_that_does_not_fit_is_refused_with_its_need() -> None:
    with pytest.raises(UsageError, match=r"needs about 500 MB .* only 499 MB are free: choose a smaller --k"):
        engine.check_memory(500.0, 499.0)
    engine.check_memory(500.0, 500.0)


_PROGRAM = """
import os, sys
sys.path.append(sys.argv[1])
from pathlib import Path
from engines.linux.launch import write_only_below
terminal = os.ttyname(os.openpty()[1])
assert write_only_below([sys.argv[2]])
Path(sys.argv[2], "mine").write_text("x")
for path in (*(Path(sys.argv[3], name) for name in ("theirs", "new")), Path(terminal)):
    try:
        path.write_text("y")
    except PermissionError:
        continue
    sys.exit(f"{path} was written")
"""


@pytest.mark.skipif(not supported(), reason="this kernel has no Landlock")
def test_only_the_given_folder_can_be_written(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "a", tmp_path / "b"
    for folder in (mine, theirs):
        folder.mkdir()
    (theirs / "theirs").write_text("before")
    argv = [sys.executable, "-c", _PROGRAM, str(ROOT), str(mine), str(theirs)]
    done = subprocess.run(argv, check=False, timeout=30, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (mine / "mine").read_text() == "x"
    assert (theirs / "theirs").read_text() == "before"
    assert not (theirs / "new").exists()


DEAD_PID = 2**22 + 1  # above the kernel's limit: never a process


def started(home: Path, script: str) -> subprocess.Popen[str]:
    argv = launcher(["/bin/sh", "-c", script], None, home, home)
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=home, start_new_session=True)


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -KILL $$", 137)])
def test_it_exits_as_the_guest_does_and_takes_its_memory_along(
    tmp_path: Path, script: str, code: int
) -> None:
    with started(tmp_path, f"stat -c '%a %n' $TMPDIR; {script}") as process:
        said, _ = process.communicate(timeout=20)
    assert process.returncode == code
    mode, folder = said.split()
    assert mode == "700"
    assert folder.startswith(f"{tmp_path}/{MEMORY}{process.pid}-")
    assert not list(tmp_path.iterdir())


def test_a_stopped_process_of_a_guest_ends_with_it(tmp_path: Path) -> None:
    with started(tmp_path, "sh -c 'kill -STOP $$' & echo $!; sleep 100") as process:
        assert process.stdout
        stopped = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert not Path("/proc", str(stopped)).exists()
    assert not list(tmp_path.iterdir())


def test_a_guest_and_its_folder_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    with started(tmp_path, "echo $$; sleep 100") as process:
        assert process.stdout
        guest = Path("/proc", process.stdout.readline().strip())
        process.kill()
        process.wait(20)
    until(lambda: not guest.exists() or "Z" in (guest / "stat").read_text().split(), 10.0, "it has ended")
    assert len(list(tmp_path.iterdir())) == 1
    with started(tmp_path, "true") as again:
        assert again.wait(20) == 0
    assert not list(tmp_path.iterdir())


def test_only_folders_of_processes_that_have_ended_are_removed(tmp_path: Path) -> None:
    alive, dead = (tmp_path / f"{MEMORY}{pid}-x" for pid in (os.getpid(), DEAD_PID))
    for folder in (alive, dead):
        folder.mkdir()
        (folder / "memory").write_text("x")
    with started(tmp_path, "true") as process:
        assert process.wait(20) == 0
    assert list(tmp_path.iterdir()) == [alive]


PANIC = b"""\
Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100
CPU: 0 UID: 0 PID: 1 Comm: init Not tainted 6.12.117 #1
 [<600250c3>] ? show_stack+0x0/0x1a3
"""
KILLED = b"Out of memory: Killed process 88 (python) total-vm:812344kB, anon-rss:701232kB\n"
NOT_MAPPED = b"""\
[  200.080000] syscall_stub_dump_error : stub syscall type 1 failed, return value = 0xfffffffffffffff4
[  200.080000] UML ran out of memory on the host side! This can happen due to a memory limitation or \
vm.max_map_count has been reached.
"""


def console(*pieces: bytes) -> Console:
    found = Console()
    for piece in pieces:
        found.take(piece)
    return found


OUT_OF_MEMORY = "it ran out of its 512 MB of memory"


@pytest.mark.parametrize(
    ("pieces", "cause"),
    [
        ((PANIC[:25], PANIC[25:]), "its kernel panicked: Attempted to kill init! exitcode=0x00000100"),
        ((KILLED,), OUT_OF_MEMORY),
        ((KILLED, PANIC), OUT_OF_MEMORY),
        ((NOT_MAPPED, KILLED), OUT_OF_MEMORY),
        ((b"hello\n",), "it ended without a result"),
    ],
)
def test_the_cause_of_an_end_is_named(pieces: tuple[bytes, ...], cause: str) -> None:
    assert console(*pieces).cause(512) == cause


def test_a_machine_that_maps_no_more_memory_is_not_a_guest_without_memory() -> None:
    cause = console(NOT_MAPPED).cause(512)
    assert "vm.max_map_count" in cause and "512" not in cause


def test_only_the_last_lines_are_kept_and_empty_ones_are_not() -> None:
    found = console(b"".join(b"line %d\n\n" % i for i in range(3 * LAST_LINES)))
    assert console(PANIC).last_lines().endswith("Not tainted 6.12.117 #1")
    assert Console().last_lines() == ""
    assert list(found.tail) == [f"line {i}" for i in range(2 * LAST_LINES, 3 * LAST_LINES)]


def clock() -> VirtualClock:
    return VirtualClock(began_s=1000.0, patience_s=60.0, limit_s=30.0)


def test_a_guest_that_never_reports_its_clock_hangs() -> None:
    here = clock()
    here.check(1060.0)
    with pytest.raises(DeadlineError, match="its clock has shown 0 s for 61 s of real time"):
        here.check(1061.0)


def test_a_slow_guest_does_not_hang_while_its_clock_goes_on() -> None:
    here = clock()
    for step in range(1, 20):
        here.read(float(step), 1000.0 + 50 * step)
        here.check(1000.0 + 50 * step + 49)
    assert here.now_s == 19.0


def test_a_clock_that_shows_the_same_time_again_and_again_stands_still() -> None:
    here = clock()
    for step in range(1, 7):
        here.read(5.0, 1000.0 + 10 * step)
    here.check(1070.0)
    with pytest.raises(DeadlineError, match="hangs: its clock has shown 5 s"):
        here.check(1071.0)


def test_a_program_that_goes_on_for_too_long_in_its_own_time_is_ended() -> None:
    here = clock()
    here.read(4.0, 1001.0)
    here.read(34.0, 1002.0)
    here.check(1002.0)
    here.read(35.0, 1003.0)
    with pytest.raises(DeadlineError, match="did not end within 30 s of the guest's time"):
        here.check(1003.0)


SPEC = RunSpec(LinkSpec(10), topology=TopologySpec("fat_tree", {"k": 4}), engine="linux", traffic="native")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataplane": "ovs"}, "--dataplane ovs"),
        ({"noise": NoiseSpec("all", 10.0, 1.0, 2.0)}, "--stalls"),
        ({"clock": "strict"}, "--clock strict"),
    ],
)
def test_what_has_no_meaning_in_a_guest_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_guest(dataclasses.replace(SPEC, **changes))
    check_guest(SPEC)


def test_ranks_without_their_program_are_refused_with_what_helps(tmp_path: Path) -> None:
    ranked = dataclasses.replace(
        SPEC, link=LinkSpec(10, discipline="pfabric"), transport=TransportSpec(1, "mintcp")
    )
    with pytest.raises(HostUnfitError, match=r"stamp is not compiled; run: setup/install\.sh"):
        check_objects(ranked, tmp_path)
    check_objects(SPEC, tmp_path)
    for name in ("stamp", "hide_sacks"):
        (tmp_path / f"{name}.o").touch()
    check_objects(ranked, tmp_path)


def test_agents_that_answer_in_real_time_are_refused() -> None:
    own = "class Mine(PortusAlgorithm):\n    command = ('/bin/true',)\n"
    text = f"from ccp.portus import PortusAlgorithm\n\n\n{own}"
    spec = dataclasses.replace(SPEC, transport=TransportSpec(1, OwnAlgorithm("mine.py", text)))
    with pytest.raises(UsageError, match="answers in real time, which the engine linux does not have"):
        LinuxEngine().check(spec)


def test_an_unfit_machine_or_kernel_is_refused_by_name() -> None:
    with pytest.raises(HostUnfitError, match="runs on x86_64, this machine is aarch64; choose --engine sim"):
        check_machine("aarch64")
    check_machine("x86_64")
    with pytest.raises(HostUnfitError, match=r"lia is not in the guests' kernel \(it has: reno, cubic\)"):
        check_congestion_controls(["reno", "lia"], ["reno", "cubic"])
    check_congestion_controls(["reno", "lia"], ["reno", "rf_lia"])


def test_without_a_kernel_one_line_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "current", lambda: None)
    with pytest.raises(HostUnfitError, match="no kernel is built yet; run: refabric kernel build"):
        LinuxEngine().check(SPEC)
    assert LinuxEngine().coupled_cc() == (COUPLED_DEFAULT, "")


def test_bad_input_is_refused_before_a_kernel_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "current", lambda: None)
    huge = dataclasses.replace(
        SPEC, topology=TopologySpec("fat_tree", {"k": 48}), transport=TransportSpec(32, "lia")
    )
    with pytest.raises(UsageError, match="the point's guest needs about"):
        LinuxEngine().check(huge)


def test_two_guests_do_not_share_a_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    name = f"test-{tmp_path.name}"
    with (
        guest.claimed_cpu(name) as first,
        guest.claimed_cpu(name) as second,
        guest.claimed_cpu(name) as third,
    ):
        assert (first, second, third) == (0, 1, None)
    with guest.claimed_cpu(name) as again:
        assert again == 0


def test_a_guest_with_more_to_do_is_expected_to_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel.__new__(Kernel)
    monkeypatch.setattr(engine, "current", lambda: kernel)
    fast = dataclasses.replace(SPEC, link=LinkSpec(100))
    assert LinuxEngine().expected_s(fast) > 5 * LinuxEngine().expected_s(SPEC)
