"""Waiting for the machine's lock ends when a process that is no emulation holds its name."""

from __future__ import annotations

import secrets
import socket
import time

import pytest

from common.errors import BusyError
from engines.emulation.sandbox import lock
from engines.emulation.sandbox.lock import Owner, emulation_lock


def test_a_name_without_a_listener_is_waited_for_only_until_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lock, "SILENT_S", 0.2)
    name = f"refabric-test-{secrets.token_hex(4)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as squatter:
        squatter.bind(f"\0{name}")
        began = time.monotonic()
        with pytest.raises(BusyError, match=f"@{name} and does not listen"), emulation_lock(60.0, name=name):
            pass
        assert time.monotonic() - began < 30.0, "it gives up long before its own deadline of 60 s"
    with emulation_lock(name=name):
        assert lock.owner(name) is not None


def test_a_process_of_another_container_is_not_to_be_killed_by_pid_0() -> None:
    assert "kill 7" in Owner(7, "refabric run").remedy
    assert "kill" not in Owner(0, "").remedy
