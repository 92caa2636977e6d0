"""Cost of congestion control by an agent between two real hosts on a veth, beside the kernel's own.

    python benchmarks/agents.py [--flows 1,4,16,64] [--rate 0] [--runs 3] [--cc reno] [--chart FILE] [--json]

After Narayan et al., SIGCOMM 2018: iperf3 sends 1 to 64 flows over a veth. Each run has the kernel's control
and the same one in an agent, with a report on every acknowledgement (`ack`), every 10 ms (`10ms`), and once
per round trip (`rtt`). Variants alternate within the run, so that each repetition gives one ratio to the
kernel's; the table has their median and range. With `--rate` MBPS all flows together send at that rate, and
CPU time is compared instead of throughput. It is measured for `--seconds` less 2: give 10 or more.
`ns_per_ack` is the kernel's statistics on the datapath's program, `agent_cpu_pct` the agent's share of one
CPU.

A repetition is `suspect` if the hypervisor took or other processes used more than 5 % of the CPU time. Needs
root and iperf3.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))


from benchmarks.agent_charts import KERNEL, draw_ratios
from benchmarks.other_programs import MAX_PCT, BusyTime, OtherPrograms
from ccp.loading import load
from ccp.names import PREFIX
from common.errors import HostUnfitError, RefabricError, RunError
from engines.emulation.congestion.agent import AgentAccount, AgentDatapath
from engines.emulation.hosts.hosts import start_namespaces
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.machine import bpf_support
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from engines.provenance import machine
from model.congestion import kernel_name
from model.spec import AgentSpec, LinkSpec, RunSpec, TransportSpec

REPORTS_US: Mapping[str, int] = {"ack": 1, "10ms": 10_000, "rtt": 0}
"""Reporting intervals by name. Every acknowledgement comes more than 1 us after the last."""
ADDRESSES = {"left": "10.9.0.1", "right": "10.9.0.2"}
SETTLE_S, SLACK_S = 1.0, 30.0
MIN_SECONDS = 3
KERNELS_OWN = ("reno", "cubic")


@dataclass(frozen=True)
class Cost:
    """One repetition of one variant. Each CPU counts 100 %; the agent's numbers are 0 without one."""

    variant: str
    flows: int
    gbps: float
    cpu_pct: float
    others_pct: float
    retransmits: int = 0
    """Retransmitted segments, those of the time that does not count included."""
    acks: int = 0
    reports: int = 0
    ns_per_ack: float = 0.0
    agent_cpu_pct: float = 0.0
    fallback_acks: int = 0
    delay_median_us: float = 0.0
    delay_p99_us: float = 0.0

    @property
    def suspect(self) -> bool:
        return self.others_pct > MAX_PCT


def inside(inside: Inside) -> int:
    """Run all variants in the private namespaces; report each repetition."""
    request = inside.request
    with two_hosts() as hosts:
        for repetition in range(request["runs"]):
            for flows in request["flows"]:
                for variant in _turned([KERNEL, *request["reports"]], repetition):
                    asked = (request["cc"], request["rate_mbps"], request["seconds"])
                    cost = _run(variant, flows, *asked, hosts)
                    inside.report(asdict(cost))
    return 0


def _turned(names: Sequence[str], by: int) -> list[str]:
    """Return the names with a different one first in each repetition, so that their order varies."""
    start = by % len(names)
    return [*names[start:], *names[:start]]


@contextmanager
def two_hosts() -> Iterator[list[HostRef]]:
    """Two network namespaces with a veth between them; /run, which has their names, is private here."""
    hosts = [HostRef(*of) for of in zip(ADDRESSES, start_namespaces(list(ADDRESSES), {}), strict=True)]
    commands = [["ip", "netns", "attach", host.name, str(host.pid)] for host in hosts]
    commands.append(_words("ip link add v netns left type veth peer name v netns right"))
    for name, address in ADDRESSES.items():
        commands.append(_words(f"ip -n {name} addr add {address}/24 dev v"))
        commands += [_words(f"ip -n {name} link set {link} up") for link in ("lo", "v")]
    for command in commands:
        _checked(command)
    try:
        yield hosts
    finally:
        for host in hosts:
            _checked(["ip", "netns", "delete", host.name])
            os.kill(host.pid, signal.SIGKILL)


def _words(command: str) -> list[str]:
    return command.split()


def _checked(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SLACK_S, check=False)
    if done.returncode:
        raise RunError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-200:]}")


def _run(
    variant: str, flows: int, cc: str, rate_mbps: float, seconds: float, hosts: Sequence[HostRef]
) -> Cost:
    if variant == KERNEL:
        return _traffic(variant, flows, cc, rate_mbps, seconds)
    spec = RunSpec(
        LinkSpec(1.0),
        transport=TransportSpec(1, PREFIX + cc),
        agent=AgentSpec(report_us=REPORTS_US[variant]),
    )
    datapath = AgentDatapath(spec)
    try:
        datapath.admit(hosts)
        cost = _traffic(variant, flows, kernel_name(PREFIX + cc), rate_mbps, seconds)
        return _with_agent(cost, datapath.stop())
    finally:
        datapath.close()


def _with_agent(cost: Cost, account: AgentAccount) -> Cost:
    did = account.metrics
    if account.outcome.failed_flows or not account.outcome.alive:
        raise RunError(f"the agent failed: {account.outcome.traceback or 'it did not answer'}")
    return replace(
        cost,
        acks=int(did["agent_acks"]),
        reports=int(did["agent_reports"]),
        ns_per_ack=did["datapath_ns_per_ack"],
        agent_cpu_pct=did["agent_cpu_pct"],
        fallback_acks=int(did["agent_fallback_acks"]),
        delay_median_us=did["agent_delay_median_us"],
        delay_p99_us=did["agent_delay_p99_us"],
    )


def _traffic(variant: str, flows: int, cc: str, rate_mbps: float, seconds: float) -> Cost:
    """Send for SETTLE_S, which do not count, and `seconds`; measure CPU use in the latter's middle."""
    each_bps = round(rate_mbps * 1e6 / flows)
    client = ["iperf3", "-c", ADDRESSES["right"], "-J", "-C", cc, "-P", str(flows), "-b", str(each_bps)]
    client += ["-O", f"{SETTLE_S:g}", "-t", f"{seconds:g}"]
    with _server():
        sending = subprocess.Popen(
            _on("left", client), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            time.sleep(2 * SETTLE_S)
            others, busy = OtherPrograms(), BusyTime()
            time.sleep(seconds - 2 * SETTLE_S)
            busy_pct, (_, others_pct) = busy.pct(), others.share()
            said, _ = sending.communicate(timeout=seconds + SLACK_S)
        finally:
            if sending.poll() is None:
                sending.kill()
                sending.wait()
    result = json.loads(said)
    if "error" in result:
        raise RunError(f"iperf3 with {cc}: {result['error']}")
    gbps = result["end"]["sum_received"]["bits_per_second"] / 1e9
    again = sum(interval["sum"]["retransmits"] for interval in result["intervals"])
    return Cost(variant, flows, gbps, busy_pct, others_pct, again)


@contextmanager
def _server() -> Iterator[None]:
    command = _on("right", ["iperf3", "-s", "--forceflush"])
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        while "listening" not in (line := server.stdout.readline()):
            if not line:
                raise RunError("iperf3 -s ended before it listened")
        yield
    finally:
        server.kill()
        server.communicate()


def _on(host: str, command: Sequence[str]) -> list[str]:
    return ["ip", "netns", "exec", host, *command]


def table(costs: Sequence[Cost], by_cpu: bool) -> list[dict[str, Any]]:
    """Return one row per number of flows and variant: medians, and the ratio to the kernel's of the same
    repetition, with its range."""
    rows = []
    for flows in dict.fromkeys(cost.flows for cost in costs):
        kernel = [cost for cost in costs if (cost.flows, cost.variant) == (flows, KERNEL)]
        for variant in dict.fromkeys(cost.variant for cost in costs):
            of = [cost for cost in costs if (cost.flows, cost.variant) == (flows, variant)]
            rows.append(_row(of, kernel, by_cpu))
    return rows


def _row(of: Sequence[Cost], kernel: Sequence[Cost], by_cpu: bool) -> dict[str, Any]:
    pairs = list(zip(of, kernel, strict=True))
    good = [pair for pair in pairs if not any(cost.suspect for cost in pair)] or pairs
    ratios = [a.cpu_pct / b.cpu_pct if by_cpu else a.gbps / b.gbps for a, b in good]
    names = ("gbps", "cpu_pct", "ns_per_ack", "agent_cpu_pct", "delay_median_us", "delay_p99_us")
    medians = {name: round(statistics.median(getattr(a, name) for a, _ in good), 3) for name in names}
    return {
        "flows": of[0].flows, "variant": of[0].variant, "ratio": round(statistics.median(ratios), 3),
        "ratio_range": [round(min(ratios), 3), round(max(ratios), 3)], "runs": len(good),
        "status": "suspect" if any(cost.suspect for pair in good for cost in pair) else "ok", **medians,
        "retransmits": sum(a.retransmits for a, _ in good),
        "acks": sum(a.acks for a, _ in good), "reports": sum(a.reports for a, _ in good),
        "fallback_acks": sum(a.fallback_acks for a, _ in good),
    }  # fmt: skip


@click.command()
@click.option("--flows", "counts", default="1,4,16,64", show_default=True, help="Numbers of flows.")
@click.option(
    "--cc", type=click.Choice(KERNELS_OWN), default="reno", show_default=True, help="Congestion control."
)
@click.option("--reports", default="ack,10ms", show_default=True, help=f"Reports: {', '.join(REPORTS_US)}.")
@click.option("--rate", "rate_mbps", default=0.0, help="Mb/s of all flows together; 0: as fast as possible.")
@click.option("--seconds", default=3.0, show_default=True, help="Measured time of each run, in seconds.")
@click.option("--runs", default=3, show_default=True, help="Repetitions of every variant.")
@click.option("--chart", type=click.Path(path_type=Path), help="Draw the ratios into this file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(counts: str, reports: str, chart: Path | None, as_json: bool, **options: Any) -> None:
    """Measure what an agent costs, and print it."""
    flows, names = _numbers(counts), reports.split(",")
    if unknown := sorted(set(names) - set(REPORTS_US)):
        raise click.UsageError(f"--reports {','.join(unknown)}: choose from: {', '.join(REPORTS_US)}")
    if options["rate_mbps"] < 0 or options["seconds"] < MIN_SECONDS or options["runs"] < 1:
        raise click.UsageError(f"--rate must be at least 0, --seconds {MIN_SECONDS}, --runs 1")
    request = {**options, "flows": flows, "reports": names}
    try:
        costs = measured(request)
    except RefabricError as error:
        click.echo(f"agents: {error}", err=True)
        sys.exit(error.exit_code)
    rows = table(costs, by_cpu=options["rate_mbps"] > 0)
    length = len(load(PREFIX + options["cc"])[1].programs[0].main)
    if chart:
        draw_ratios(rows, chart, by_cpu=options["rate_mbps"] > 0, words=_words_of(options, length))
    if as_json:
        head = {"benchmark": "agents", **request, "instructions_per_ack": length}
        click.echo(json.dumps({**head, "rows": rows, "machine": machine()}))
        return
    for row in rows:
        click.echo("  ".join(f"{key} {value}" for key, value in row.items()))


def _words_of(options: Mapping[str, Any], length: int) -> list[str]:
    rate = f"{options['rate_mbps']:g} Mb/s" if options["rate_mbps"] else "as fast as possible"
    runs = f"{options['runs']} runs of {options['seconds']:g} s"
    return [rate, f"{PREFIX}{options['cc']}", f"{length} instructions per ACK", runs]


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1 or max(numbers) > 128:
        raise click.UsageError(f"--flows {text}: give numbers from 1 to 128, e.g. 1,4,16,64")
    return numbers


def measured(request: Mapping[str, Any]) -> list[Cost]:
    """Run all variants. Raises RefabricError."""
    if not bpf_support().ok:
        raise HostUnfitError(bpf_support().text)
    found: list[Any] = []
    each_s = 2 * SETTLE_S + request["seconds"] + SLACK_S
    count = request["runs"] * len(request["flows"]) * (1 + len(request["reports"]))
    with emulation_lock(wait_s=60.0):
        spawn_inside(
            "benchmarks.agents:inside", dict(request), deadline_s=count * each_s, on_report=found.append
        )
    return [Cost(**cost) for cost in found]


if __name__ == "__main__":
    main()
