"""Labels of axes that several charts have; that of a metric is in its record (analysis/quantities.py)."""

from __future__ import annotations

from plots.data import Panel
from plots.shared import style

SECONDS = "seconds"
SECONDS_OF_WINDOW = "seconds since the opening of the measured window"
SUBFLOWS = "subflows"
SUBFLOWS_PER_FLOW = "subflows per flow"
TRANSPORTS = "TCP, and MPTCP by its number of subflows"
FLOWS = "flows, slowest first (%)"
FLOWS_SHORT = "% of flows"
"""The same, where there is little room."""
LOAD = "load (%)"
GOODPUT_MBPS = "goodput (Mb/s)"
GOODPUT_PCT = "goodput (%)"
QUEUE = "queue (packets)"
CWND = "cwnd (packets)"
CALLS = "calls/s"
COMPLETION_OVER_ALONE = "completion time / time alone"
OVER_ALONE = "time / time alone"
"""The same, where there is little room."""


def relative_goodput(panel: Panel) -> str:
    """Return the label of the goodput of single flows relative to that of one flow alone."""
    return f"goodput ({style.percent_of(panel)})"


def on_two_lines(label: str) -> str:
    """Return the label with its unit on a line of its own."""
    return label.replace(" (", "\n(", 1)
