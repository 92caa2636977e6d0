"""`remote:PORT` and `cmd:PROGRAM`: which are accepted, and how they are written back."""

from __future__ import annotations

import pytest

from common.errors import UsageError
from model.spec import OpenFlowSpec, is_own, remote_port


def test_own_controllers_are_distinguished_from_names() -> None:
    assert is_own("remote:6633")
    assert is_own("cmd:pox.py forwarding.l2_learning")
    assert not is_own("osken")
    assert remote_port("remote:6633") == 6633
    assert remote_port("cmd:remote:1") is None


BAD = ["remote:", "remote:0", "remote:65536", "remote:x", "remote:²", "cmd:", "cmd:'"]


@pytest.mark.parametrize("controller", BAD)
def test_what_cannot_be_is_refused(controller: str) -> None:
    with pytest.raises(UsageError, match="--controller"):
        OpenFlowSpec(controller=controller)


def test_a_mode_is_for_our_controllers() -> None:
    with pytest.raises(UsageError, match="decides itself"):
        OpenFlowSpec("remote:6633", mode="proactive")
