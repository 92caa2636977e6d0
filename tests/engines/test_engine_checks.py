"""What the emulation engine refuses before anything starts."""

from __future__ import annotations

import pytest

from engines.emulation.engine import check_sysctls
from fabric.errors import UsageError


def test_a_sysctl_must_be_one_of_this_kernel() -> None:
    check_sysctls(["net.ipv4.tcp_sack"])
    for wrong in ("net.ipv4.tcp_snack", "net.ipv4"):
        with pytest.raises(UsageError, match=f"--sysctl {wrong}: this kernel has none of that name"):
            check_sysctls([wrong])
