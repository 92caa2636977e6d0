"""Results on their way from the inner to the outer process arrive as they were."""

from __future__ import annotations

import json

import numpy as np

from engines.kernel_hosts.wire import decode, encode
from model.reasons import LATE, RTT, Fault, Reason, of_text
from model.result import RunResult, Status, Table


def test_a_result_arrives_as_it_was() -> None:
    late = Reason(LATE, "late", Fault.OTHERS, (("late_p99_us", 3000.0),), (RTT,))
    sent = RunResult(
        Status.SUSPECT,
        (of_text("CPU: busy"), late),
        samples={"links": Table({"t_s": np.array([0.5, 1.0]), "port": np.array([1, 2])})},
        metrics={"cpu_busy_pct": 70.0},
        provenance={"kernel": "6.18"},
        cautions=(late,),
    )
    assert decode(json.loads(json.dumps(encode(sent)))) == sent
