"""The students' command at k=4, judged as CI must: a noisy machine is a warning, a wrong count is not.

.venv/bin/python .ci/smoke.py RESULTS_FOLDER
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from model.reasons import DRIFT, KINDS, REPAIRS, UNSTEADY

ROOT = Path(__file__).resolve().parents[1]
REFABRIC = ROOT / ".venv/bin/refabric"
ARGUMENTS = ("4", "one_to_one", "qmon", "--profile", "smoke")
IPERF3 = (
    "4",
    "one_to_several",
    "--profile",
    "smoke",
    "--subflows",
    "1,4",
    "--rate",
    "10",
    "--traffic",
    "iperf3",
)
SIMULATED = ("4", "one_to_one", "--profile", "smoke", "--engine", "simulator")
EXPECTED_POINTS = 4  # the reference, TCP, MPTCP with 2 and with 8 subflows
EXPECTED_IPERF3 = 3
OVS = (
    "run",
    "cs244-one-to-one",
    "--k",
    "4",
    "--profile",
    "smoke",
    "--dataplane",
    "ovs",
    "--rate",
    "0.5",
    "--subflows",
    "1",
)
EXPECTED_OVS = 2
CROSS_CHECK = "cross-check"
BOTH_ENGINES = (CROSS_CHECK, "--k", "4", "--rate", "20", "--cc", "lia", "--seconds", "10", "--warmup", "10")
EXPECTED_BOTH = 6  # the reference, TCP and MPTCP with 8 subflows, emulated and simulated
LEAST_CORRELATION = 0.5
"""Of what TCP flows get in both engines, over the same paths: 0.97 and more on a machine under load."""
TIMEOUT_S = 600
CHARTS = ("throughput", "rank")
EXPERIMENT = "cs244-one-to-one"
NO_FAULT_OF_OURS = frozenset(
    {REPAIRS, UNSTEADY, DRIFT, *(name for name, kind in KINDS.items() if kind.machine)}
)
"""Kinds of reasons. The baseline has a row of its own, which says why it is suspect."""


def main(results: Path) -> int:
    students = str(ROOT / "run_mptcp.sh")
    wrong_words = sweep(results / "students", (students, *ARGUMENTS), EXPECTED_POINTS)
    wrong_words += sweep(results / "iperf3", (students, *IPERF3), EXPECTED_IPERF3)
    wrong_words += sweep(results / "simulated", (students, *SIMULATED), EXPECTED_POINTS)
    wrong_words += sweep(results / "ovs", (str(REFABRIC), *OVS), EXPECTED_OVS)
    wrong_words += sweep(results / "both", (str(REFABRIC), "run", *BOTH_ENGINES), EXPECTED_BOTH, CROSS_CHECK)
    wrong_words += engines_differ(results / "both")
    wrong_words += in_virtual_time(results / "virtual")
    if wrong_words:
        return 1
    return check_charts(results / "students") + read_again(results)


def sweep(results: Path, command: Sequence[str], expected: int, experiment: str = EXPERIMENT) -> int:
    """Run it, twice when the machine was busy; 1 when something is wrong that no noise excuses."""
    for attempt in (1, 2):
        if attempt == 2:
            shutil.rmtree(results)  # noise that has changed may mean another link rate
        run(results, command)
        rows = read(results / experiment)
        problems = wrong(rows, expected)
        if problems:
            print("\n".join(f"smoke: {problem}" for problem in problems))
            return 1
        noisy = [row for row in rows if row["status"] == "suspect"]
        if not noisy:
            break
        why = noisy[0]["reasons"]
        print(f"smoke: attempt {attempt}: the machine made {len(noisy)} points suspect: {why}")
    else:
        print("smoke: WARNING: this machine was too busy for a result; counts and clean-up were right")
    return 0


def engines_differ(results: Path) -> int:
    """Whether TCP flows rank as if the engines sent them over different paths. A busy machine is heard."""
    argv = [str(REFABRIC), "plot", CROSS_CHECK, "--results", str(results), "--json"]
    told = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=True).stdout
    events = [json.loads(line) for line in told.splitlines()]
    measured = [
        event["measured"]["value"]
        for event in events
        if event["event"] == "verdict" and event["measured"]
        if (event["quantity"], event["algorithm"], event["k"]) == ("across_spearman", "tcp", 4)
    ]
    if measured and measured[0] > LEAST_CORRELATION:
        return 0
    print(f"smoke: cross-check: TCP's flows correlate by {measured or 'nothing'} between the engines")
    if any(row["status"] == "suspect" for row in read(results / CROSS_CHECK)):
        print("smoke: WARNING: but this machine was too busy to tell")
        return 0
    return 1


def in_virtual_time(results: Path) -> int:
    """What needs no machine to itself must end well: every point ok."""
    commands = (
        ("run", "validation"),
        ("run", "short-beside-long"),
        ("run", "topologies", "--k", "4", "--warmup", "0.5", "--seconds", "1"),
        ("run", "sigcomm11", "--engine", "simulator", "--profile", "smoke"),
    )
    failed = [command for command in commands if refabric(*command, "--results", str(results))]
    for command in failed:
        print(f"smoke: refabric {' '.join(command)} failed")
    return len(failed)


def read_again(results: Path) -> int:
    """The commands that only read: every one of the README must work on what has just been measured."""
    first, second = str(results / "students"), str(results / "iperf3")
    commands = (
        ("list",),
        ("plan", EXPERIMENT, "--k", "8"),
        ("plan", "cs244", "--rate", "5"),
        ("plan", "coupled-sweep", "--rate", "5", "--cc", "reno,lia"),
        ("status", EXPERIMENT, "--profile", "smoke", "--k", "4", "--results", first),
        ("plot", EXPERIMENT, "--results", first),
        ("report", EXPERIMENT, "--results", first),
        ("plan", "sigcomm11", "--engine", "both"),
        ("compare", first, second),
        ("compare", f"{first}/{EXPERIMENT}", f"{second}/{EXPERIMENT}"),
    )
    failed = [command for command in commands if refabric(*command) not in (0, 1)]
    for command in failed:
        print(f"smoke: refabric {' '.join(command)} failed")
    report = results / "students" / EXPERIMENT / "report.html"
    if not report.is_file():
        print(f"smoke: no {report.name}")
    return int(bool(failed) or not report.is_file())


def refabric(*arguments: str) -> int:
    """Exit code 1 tells of suspect points, which `sweep` has judged."""
    return subprocess.run([REFABRIC, *arguments], timeout=TIMEOUT_S, check=False).returncode


def run(results: Path, command: Sequence[str]) -> None:
    """Exit code 1 only says that a point is suspect or failed: the rows tell which."""
    argv = [*command, "--results", str(results)]
    code = subprocess.run(argv, timeout=TIMEOUT_S, check=False).returncode
    if code not in (0, 1):
        sys.exit(f"smoke: {' '.join(argv)} ended with {code}")


def read(folder: Path) -> list[dict[str, str]]:
    with (folder / "summary.csv").open() as file:
        return list(csv.DictReader(file))


def wrong(rows: list[dict[str, str]], expected: int) -> list[str]:
    """What no noise excuses."""
    found = [] if len(rows) == expected else [f"{len(rows)} points, expected {expected}"]
    for row in rows:
        point = f"{row['transport']} {row['subflows']} ({row['workload']})"
        if row["status"] == "failed":
            found.append(f"{point} failed: {row['reasons']}")
        elif row["status"] == "suspect" and not NO_FAULT_OF_OURS.issuperset(row["kinds"].split(", ")):
            found.append(f"{point}: {row['reasons']}")
        elif not 0 < float(row["goodput_mbps_mean"]) <= float(row["rate_mbps"]):
            found.append(
                f"{point}: mean goodput {row['goodput_mbps_mean']} Mb/s on {row['rate_mbps']} Mb/s links"
            )
    return found


def check_charts(results: Path) -> int:
    folder = results / EXPERIMENT
    missing = [
        f"{chart}.{kind}"
        for chart in CHARTS
        for kind in ("svg", "pdf", "png")
        if not any(folder.rglob(f"{chart}*.{kind}"))
    ]
    for name in missing:
        print(f"smoke: no chart {name}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
