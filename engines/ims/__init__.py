"""SIP calls through an IMS, a kind of workload: simulated, and with real programs (docs/experiments/ims.md).

`calls` is the run with its controller, its result and verdict; `simulated` and `real` run it on engines.
The settings of the workload are in workloads/sip.py.
"""

from engines.ims.calls import COLUMNS, verdict
from engines.workload import WorkloadKind

KIND = WorkloadKind(
    engines={"simulator": "engines.ims.simulated", "mininet": "engines.ims.real"},
    verdict=verdict,
    tables=COLUMNS,
)
