"""`refabric worker`: this machine as a worker of a Dask cluster."""

from __future__ import annotations

import tempfile

import click

from common.errors import HostUnfitError
from engines.emulation.sandbox import client


@click.command(short_help="Run points of other machines' sweeps.")
@click.argument("address")
@click.option("--host", metavar="ADDRESS", required=True, help="Listen at this address of a private network.")
@click.option("--nthreads", type=click.IntRange(1), metavar="N", help="Run N points at once. [default: CPUs]")
@click.option("--memory-limit", metavar="BYTES", help="Use at most this memory. [default: all]")
@click.option("--insecure", is_flag=True, help="Let root's helper serve a scheduler without TLS.")
@click.option("--real-hosts", is_flag=True, help="Offer real hosts in real time, one point at a time.")
def worker(
    address: str, host: str, nthreads: int | None, memory_limit: str | None, insecure: bool, real_hosts: bool
) -> None:
    """Run points of other machines' sweeps, as the Dask scheduler at ADDRESS hands them out, until Ctrl-C.

    Real hosts need root: sudo starts the root helper, and the worker itself is the user's process.
    """
    if real_hosts and not client.available():
        raise HostUnfitError(f"real hosts need root; run: sudo .venv/bin/refabric worker {address} ...")
    from distributed.cli.dask_worker import main  # noqa: PLC0415 -- 0.6 s

    from harness.execute.dask_cluster import check_address  # noqa: PLC0415

    check_address(address, client.available(), insecure)

    argv = [address, "--host", host, "--no-dashboard"]
    if memory_limit:
        argv += ["--memory-limit", memory_limit]
    if real_hosts:  # the helper's connection is this process's, so no nanny starts another one
        argv += ["--no-nanny", "--nthreads", "1", "--resources", "emulation=1"]
    elif nthreads:
        argv += ["--nthreads", str(nthreads)]
    # Not the usual folder in /tmp, which anybody may have made: Dask imports from it.
    with tempfile.TemporaryDirectory(prefix="refabric-worker-") as folder:
        main([*argv, "--local-directory", folder], standalone_mode=False)
