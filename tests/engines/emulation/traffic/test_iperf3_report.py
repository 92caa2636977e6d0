"""iperf3's argv and its JSON, on outputs of iperf3 3.12 (tests/data/iperf3)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engines.emulation.traffic.driver import Delivered
from engines.emulation.traffic.iperf3 import Iperf3Report, client_argv, delivered, parse_report, server_argv
from model.flows import PlannedFlow

DATA = Path(__file__).parents[3] / "data" / "iperf3"
FLOW = PlannedFlow(3, "a", "b", "10.0.0.1", "10.0.0.2", 5001, 10000)


def report(name: str) -> Iperf3Report:
    return parse_report((DATA / f"{name}.json").read_text())


def test_argv() -> None:
    assert server_argv("/usr/bin/iperf3", FLOW)[:6] == ("/usr/bin/iperf3", "-4", "-s", "-1", "-p", "5001")
    line = " ".join(client_argv("iperf3", FLOW, 12.2))
    assert line.startswith("iperf3 -4 -c 10.0.0.2 -p 5001 -B 10.0.0.1 --cport 10000 -t 13 -C reno")
    assert " -l " not in line
    assert " --dscp " not in line
    assert client_argv("iperf3", FLOW, 12.2, 4096)[-2:] == ("-l", "4096")
    assert client_argv("iperf3", dataclasses.replace(FLOW, dscp=46), 12.2)[-2:] == ("--dscp", "46")


def test_a_flow_that_ended_by_itself() -> None:
    end = delivered(3, report("client"), report("server"), stopped=False)
    assert end.error == ""
    assert 12_000_000 < end.received_bytes <= 12_665_656


def test_a_flow_we_stopped_has_data_and_no_error() -> None:
    ends = report("client_terminated"), report("server_terminated")
    assert delivered(3, *ends, stopped=True) == Delivered(3, 14_838_768, "")
    assert "terminated" in delivered(3, *ends, stopped=False).error


@pytest.mark.parametrize(
    ("name", "words"), [("client_refused", "Connection refused"), ("client_unknown_cc", "TCP_CONGESTION")]
)
def test_failures_are_read_from_the_json(name: str, words: str) -> None:
    failed = report(name)
    assert words in failed.error
    assert failed.received_bytes == 0


@pytest.mark.parametrize("text", ["", "iperf3: error - x", '{"start": {'])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        parse_report(text)
