"""A cluster by the recipe of docs/clusters.md: certificates are made here, clients without are refused."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from common.errors import UsageError
from tests.support.dask_cluster import ROOT, Lab, cluster

pytest.importorskip("distributed", reason="this .venv is older than requirements.txt: run setup/install.sh")

from harness.cli.machine import worker
from harness.execute.dask_cluster import check_address

RECIPE = re.compile(r"<!-- tls recipe -->\n```\n(.*?)```\n<!-- end -->", re.DOTALL)
SIMULATE = ("--engine", "simulator", "--k", "4", "--subflows", "1", "--rate", "20", "--seconds", "0.2")


@pytest.mark.parametrize(
    "address",
    ["tcp://10.0.0.1:8786", "tcp://lab.example:8786", "tcp://[2001:db8::1]:8786", "tcp://127.0.0.1:8786"],
)
def test_root_does_not_trust_a_scheduler_that_anybody_could_be(address: str) -> None:
    with pytest.raises(UsageError, match=r"must use tls://.*--insecure"):
        check_address(address, root=True, insecure=False)
    check_address(address.replace("tcp:", "tls:"), root=True, insecure=False)
    check_address(address, root=True, insecure=True)
    check_address(address, root=False, insecure=False)


def test_a_bad_address_is_named_as_the_command_takes_it() -> None:
    with pytest.raises(UsageError, match=r"--dask nonsense: .*write it like tcp://"):
        check_address("nonsense", root=False, insecure=False)
    with pytest.raises(UsageError, match=r"ADDRESS nonsense: .*write it like tcp://"):
        worker.main(["nonsense", "--host", "127.0.0.1"], standalone_mode=False)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return the environment of a machine on which the page's commands were run."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which the recipe uses, is not installed")
    folder = tmp_path_factory.mktemp("certificates") / "dask"
    (recipe,) = RECIPE.findall((ROOT / "docs/clusters.md").read_text())
    script = recipe.replace("/etc/dask", str(folder))
    subprocess.run(["sh", "-e"], input=script, text=True, check=True, capture_output=True, timeout=60)
    return {"DASK_CONFIG": str(folder)}


@pytest.fixture(scope="module")
def lab(certified: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    one = ("--nthreads", "1")
    with cluster(tmp_path_factory.mktemp("tls"), one, env=certified, host="tls://127.0.0.1") as made:
        yield made


def run_sweep(results: Path, address: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("refabric")
    argv = [str(program), "run", "cs244-one-to-one", *SIMULATE, "--results", str(results), "--dask", address]
    return subprocess.run(
        argv, env={**os.environ, **env}, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.builds
def test_a_sweep_runs_on_a_cluster_with_certificates(
    lab: Lab, certified: Mapping[str, str], tmp_path: Path
) -> None:
    assert lab.address.startswith("tls://")
    done = run_sweep(tmp_path / "results", lab.address, certified)
    assert done.returncode in {0, 1}, done.stderr + lab.logs()
    assert len(list((tmp_path / "results").rglob("run.json"))) == 2, "the baseline and TCP"


@pytest.mark.parametrize("scheme", ["tls", "tcp"])
def test_a_client_without_a_certificate_is_refused_in_one_line(lab: Lab, tmp_path: Path, scheme: str) -> None:
    address = lab.address.replace("tls", scheme)
    done = run_sweep(tmp_path / "results", address, {"DASK_CONFIG": str(tmp_path)})
    assert done.returncode in {2, 3}, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not list(tmp_path.rglob("run.json"))
