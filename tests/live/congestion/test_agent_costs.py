"""The measurements of an agent's costs run between real hosts, and their counts are right."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from benchmarks import agents, messages
from engines.emulation.machine import bpf_support

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0 or not bpf_support().ok, reason="needs root and BPF"),
]


def test_throughput_beside_the_kernels_control() -> None:
    options = ["--flows", "2", "--runs", "1", "--reports", "ack,10ms", "--json"]
    result = CliRunner().invoke(agents.main, options)
    assert result.exit_code == 0, result.output
    kernel, ack, rare = json.loads(result.stdout)["rows"]
    assert [row["variant"] for row in (kernel, ack, rare)] == ["kernel", "ack", "10ms"]
    assert all(row["gbps"] > 0.1 for row in (kernel, ack, rare))
    assert ack["reports"] > 0.9 * ack["acks"] > 100, "a report for each acknowledgement"
    every_10_ms = 2 * 100 * 6
    assert 2 <= rare["reports"] <= every_10_ms + rare["retransmits"], "a loss is reported at once"
    assert ack["ns_per_ack"] > 50
    assert kernel["acks"] == 0


def test_every_message_comes_back() -> None:
    result = CliRunner().invoke(messages.main, ["--messages", "200", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [row["transport"] for row in rows] == list(messages.TRANSPORTS)
    assert all(row["lost"] == 0 and row["median_us"] > 1 for row in rows)
