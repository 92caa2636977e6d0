"""Stock Mininet loads our topologies: `mn --custom topos/mininet_topos.py --topo ft,4 --test none`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.two_hosts import ISOLATE

pytestmark = pytest.mark.emulation

ROOT = Path(__file__).resolve().parents[3]
CUSTOM = "topos/mininet_topos.py,tests/support/dataplanes/null_switch.py"


def mn(topology: str) -> subprocess.CompletedProcess[str]:
    """Run `mn` in private namespaces, because it deletes files in /tmp by name when it fails."""
    command = (
        f"mount -t tmpfs none /tmp && exec /usr/bin/python3 /usr/bin/mn --custom {CUSTOM} --topo {topology}"
    )
    argv = [*ISOLATE, "sh", "-c", f"{command} --switch null --controller none --test none"]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("topology", "last_host"),
    [("ft,4", "p3e1h1"), ("dhft,4", "p3e2h2"), ("star,3", "s1h2"), ("db,2,lanes=2", "r1h1")],
)
def test_mn_builds_it(topology: str, last_host: str) -> None:
    done = mn(topology)
    assert done.returncode == 0, done.stderr
    assert last_host in done.stdout + done.stderr


def test_a_wrong_parameter_is_one_clear_line() -> None:
    done = mn("ft,5")
    assert done.returncode == 1
    assert "even number" in done.stderr
    assert "Traceback" not in done.stderr
