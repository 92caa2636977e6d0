"""What pages show as output is what the commands print: simulated, so the same on every machine."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
_SHOWN = re.compile(r"<!-- output: (.+?) -->\n```text\n(.*?)```", re.DOTALL)
BLOCKS = [
    (page.relative_to(DOCS.parent).as_posix(), command, text)
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    for command, text in _SHOWN.findall(page.read_text())
]
assert "docs/start/ten-minutes.md" in {page for page, _, _ in BLOCKS}


@pytest.mark.parametrize(("page", "command", "text"), BLOCKS)
def test_the_output_is_as_shown(page: str, command: str, text: str, tmp_path: Path) -> None:
    program, *arguments = shlex.split(command)
    assert program == ".venv/bin/refabric"
    refabric = str(Path(sys.executable).with_name("refabric"))
    done = subprocess.run(
        [refabric, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in text.splitlines():
        assert any(each.startswith(" ".join(line.split())) for each in said), (page, line)
