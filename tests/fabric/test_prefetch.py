"""The compiler keeps prefetch instructions. GCC 12 treated a function that does nothing else as one without
effects, and dropped its calls without a warning (core/memory.hpp)."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fabric import _core

SOURCES = Path(__file__).resolve().parents[2] / "fabric"
MNEMONICS = {"x86_64": "prefetch", "aarch64": "prfm"}
CALL = re.compile(r"(?<!void )\bprefetch(_to_write|_lines)?\(")
ASKER = """
#include "core/memory.hpp"
struct Board { long words[40]; };
[[gnu::noinline]] static void expect(const Board& board) {
  fabric::prefetch_to_write(&board);
  fabric::prefetch(board.words + 30);
}
void ask(const Board& board) { expect(board); }
"""


def instructions(binary: Path) -> int:
    """Return the number of prefetch instructions in a binary."""
    mnemonic = MNEMONICS.get(platform.machine())
    if mnemonic is None:
        pytest.skip(f"the prefetch instruction of {platform.machine()} is not known here")
    if shutil.which("objdump") is None:
        pytest.skip("no objdump: sudo apt-get install binutils")
    argv = ["objdump", "--disassemble", "--no-show-raw-insn", str(binary)]
    code = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout
    return len(re.findall(rf"\t{mnemonic}", code))


def test_the_core_has_an_instruction_for_each_call() -> None:
    texts = [path for ending in ("hpp", "cpp") for path in SOURCES.rglob(f"*.{ending}")]
    asked = sum(len(CALL.findall(path.read_text())) for path in texts if path.name != "memory.hpp")
    assert asked > 0
    assert instructions(Path(str(_core.__file__))) >= asked, "inlined, there are more rather than fewer"


def test_a_function_that_only_asks_is_called(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++: sudo apt-get install g++")
    source, compiled = tmp_path / "asker.cpp", tmp_path / "asker.o"
    source.write_text(ASKER)
    argv = [compiler, "-std=c++20", "-O3", f"-I{SOURCES}", "-c", str(source), "-o", str(compiled)]
    subprocess.run(argv, check=True, timeout=120)
    assert instructions(compiled) == 2
