"""Chart files: whole or not there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from common import files
from common.errors import StoreError
from plots.charts import throughput
from plots.data import Inputs
from tests.support.chart_points import point


def test_a_full_disk_is_named_and_leaves_the_older_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in throughput.draw_throughput(Inputs([point(1)], tmp_path))}
    really = files.write_bytes

    def full(path: Path, data: bytes) -> None:
        really(path, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_bytes", full)
    with pytest.raises(StoreError, match=f"{tmp_path}.*: No space left on device; free some space"):
        throughput.draw_throughput(Inputs([point(1)], tmp_path))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
