"""The students' command at k=4, judged as CI must: a noisy machine is a warning, a wrong count is not.

.venv/bin/python .ci/smoke.py RESULTS_FOLDER
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARGUMENTS = ("4", "one_to_one", "--profile", "smoke")
EXPECTED_POINTS = 4  # the reference, TCP, MPTCP with 2 and with 8 subflows
TIMEOUT_S = 600
CHARTS = ("throughput", "rank")


def main(results: Path) -> int:
    for attempt in (1, 2):
        run(results, force=attempt == 2)
        rows = read(results)
        problems = wrong(rows)
        if problems:
            print("\n".join(f"smoke: {problem}" for problem in problems))
            return 1
        noisy = [row for row in rows if row["status"] == "suspect"]
        if not noisy:
            break
        print(f"smoke: attempt {attempt}: {len(noisy)} points suspect for CPU reasons: {noisy[0]['reasons']}")
    else:
        print("smoke: WARNING: this machine was too busy for a result; counts and clean-up were right")
    return check_charts(results)


def run(results: Path, force: bool) -> None:
    """Exit code 1 only says that a point is suspect or failed: the rows tell which."""
    argv = [
        str(ROOT / "run_mptcp.sh"),
        *ARGUMENTS,
        "--results",
        str(results),
        *(["--force"] if force else []),
    ]
    code = subprocess.run(argv, timeout=TIMEOUT_S, check=False).returncode
    if code not in (0, 1):
        sys.exit(f"smoke: {' '.join(argv)} ended with {code}")


def read(results: Path) -> list[dict[str, str]]:
    with (results / "cs244-one-to-one" / "summary.csv").open() as file:
        return list(csv.DictReader(file))


def wrong(rows: list[dict[str, str]]) -> list[str]:
    """What no noise excuses."""
    found = [] if len(rows) == EXPECTED_POINTS else [f"{len(rows)} points, expected {EXPECTED_POINTS}"]
    for row in rows:
        point = f"{row['transport']} {row['subflows']} ({row['workload']})"
        if row["status"] == "failed":
            found.append(f"{point} failed: {row['reasons']}")
        elif row["status"] == "suspect" and not all(
            r.strip().startswith("CPU:") for r in row["reasons"].split(";")
        ):
            found.append(f"{point}: {row['reasons']}")
        elif not 0 < float(row["goodput_mbps_mean"]) <= float(row["rate_mbps"]):
            found.append(
                f"{point}: mean goodput {row['goodput_mbps_mean']} Mb/s on {row['rate_mbps']} Mb/s links"
            )
    return found


def check_charts(results: Path) -> int:
    folder = results / "cs244-one-to-one"
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
