"""The command line of a guest, its process 1, and its memory."""

from __future__ import annotations

import dataclasses
import py_compile
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

import topos
from common.errors import UsageError
from engines.linux import memory
from engines.linux.command import NO_BYTECODE, Terminal, command, script, tcp_mem
from model.flows import planned_flows
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec


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
    return memory.expected_mb(point, topology, planned_flows(point, topology))


def test_the_command_line_names_no_path_but_the_kernels_own() -> None:
    first, second = (command(Path(kernel), 1024, 7) for kernel in ("/a/linux", "/somewhere/else/linux"))
    assert first[1:] == second[1:]
    assert not [word for word in first[1:] if "/a/" in word]
    assert "mem=1024M" in first
    assert "rng_seed=7" in first


def test_another_seed_changes_the_command_line_in_one_place() -> None:
    first, second = command(Path("/linux"), 1024, 7), command(Path("/linux"), 1024, 8)
    assert [(a, b) for a, b in zip(first, second, strict=True) if a != b] == [("rng_seed=7", "rng_seed=8")]


def test_the_root_file_system_is_read_only_and_time_is_virtual() -> None:
    words = command(Path("/linux"), 1024, 7)
    assert "ro" in words
    assert "rw" not in words
    assert "time-travel=inf-cpu" in words
    assert any(word.startswith("time-travel-start=") for word in words)


def test_process_1_is_a_valid_script_and_quotes_the_program(tmp_path: Path) -> None:
    text = script(["/a folder/python", "-c", "print('x; y')"], 1024)
    path = tmp_path / "init"
    path.write_text(text)
    subprocess.run(["sh", "-n", path], check=True, timeout=10)
    assert """'/a folder/python' -c 'print('"'"'x; y'"'"')'""" in text


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
        assert memory.guest_mb(expected) >= memory.HEADROOM * expected
        assert memory.guest_mb(expected) % memory.STEP_MB == 0


def test_memory_grows_with_samples() -> None:
    plain = spec(8, 8)
    sampled = dataclasses.replace(plain, sampling=SamplingSpec(queues_ms=10, sockets_ms=200))
    longer = dataclasses.replace(sampled, warmup_s=3 * plain.warmup_s, seconds=3 * plain.seconds)
    more = expected_mb(sampled) - expected_mb(plain)
    assert more > 50
    assert expected_mb(longer) - expected_mb(plain) == pytest.approx(3 * more)


def test_a_point_that_does_not_fit_is_refused_with_its_need() -> None:
    with pytest.raises(UsageError, match=r"needs about 500 MB .* only 499 MB are free: choose a smaller --k"):
        memory.check_memory(500.0, 499.0)
    memory.check_memory(500.0, 500.0)


@pytest.mark.parametrize("terminal", [Terminal(live=True, rows=30, columns=100), Terminal(live=False)])
def test_a_shell_has_the_terminal_and_a_valid_script(terminal: Terminal, tmp_path: Path) -> None:
    assert "con0=fd:0,fd:9" in command(Path("/linux"), 1024, 7, "fd:0,fd:9")
    text = script(["/a folder/python"], 1024, terminal)
    path = tmp_path / "init"
    path.write_text(text)
    subprocess.run(["sh", "-n", path], check=True, timeout=10)
    assert ">/dev/tty0" in text
    assert ("stty rows 30 columns 100" in text) == terminal.live
    assert ("</run/point/commands" in text) != terminal.live


def test_a_clone_below_tmp_stays_visible_until_the_program_starts() -> None:
    assert "tmpfs /tmp" not in script(["/tmp/clone/python"], 1024)
