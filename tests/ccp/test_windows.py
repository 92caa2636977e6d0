"""The window that an algorithm sees: what is in force in the datapath."""

from __future__ import annotations

import pytest

from ccp.agent import Agent, FlowCreated, FlowReport
from ccp.algorithm import Algorithm, Flow, Report
from ccp.programs import compiled, only

MSS = 1000
COUNT = """
acked: volatile = 0
acked += Ack.bytes_acked
report()
"""


class Setting(Algorithm):
    """Notes the window of each report, and then sets the next of `wanted`."""

    def __init__(self, *wanted: float) -> None:
        self.wanted = list(wanted)
        self.seen: list[int] = []

    def on_report(self, flow: Flow, report: Report) -> None:
        assert report.acked == MSS
        self.seen.append(flow.cwnd_bytes)
        if self.wanted:
            flow.set(cwnd_bytes=self.wanted.pop(0))


def seen(algorithm: Setting, *windows: int) -> list[int]:
    """Return what the algorithm sees in reports of these windows."""
    agent = Agent(algorithm, only(compiled(COUNT)))
    agent.handle(FlowCreated(1, 0, MSS, 10 * MSS, "10.0.0.1", "10.0.0.2"))
    for t_us, window in enumerate(windows):
        agent.handle(FlowReport(1, t_us, (MSS,), cwnd_bytes=window))
    assert agent.failed_flows == 0, agent.traceback
    return algorithm.seen


@pytest.mark.parametrize(("wanted", "packets"), [(0, 2), (1999, 2), (2000, 2), (5000, 5), (1e12, 2**20)])
def test_a_window_is_within_the_datapaths_limits_at_once(wanted: float, packets: int) -> None:
    assert seen(Setting(wanted), 10 * MSS, 10 * MSS) == [10 * MSS, packets * MSS]


def test_an_algorithm_that_sets_nothing_sees_what_its_program_does() -> None:
    windows = [10 * MSS, 11 * MSS, MSS, 2 * MSS]
    assert seen(Setting(), *windows) == windows


def test_reports_older_than_a_command_do_not_take_it_back() -> None:
    """Three commands are on their way; the datapath skips the second."""
    algorithm = Setting(20_000, 30_000, 40_000)
    reported = [10_000, 10_000, 10_000, 20_000, 40_000]
    assert seen(algorithm, *reported) == [10_000, 20_000, 30_000, 40_000, 40_000]


def test_a_timeout_is_seen_although_a_command_is_on_its_way() -> None:
    assert seen(Setting(20_000), 10_000, MSS, 20_000) == [10_000, MSS, 20_000]
