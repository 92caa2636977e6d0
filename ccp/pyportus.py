"""What `import pyportus` gives a user's file: portus' Python classes, which run here as an Algorithm.

Files of courses define `AlgBase` with `datapath_programs` and `new_flow`, and call `start`
(github.com/ccp-project/portus, python/). Windows are in bytes, rates in bytes per second.
"""

from __future__ import annotations

import contextlib
import ipaddress
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ccp.algorithm import Algorithm, Flow, Report
from common.errors import UsageError

NAMES = ("pyportus", "portus")
"""Names that files import this module by; portus' own is not looked for."""
METHODS = ("datapath_programs", "new_flow")
_started: list[object] = []


class AlgBase:
    """The base of a congestion control."""

    def datapath_programs(self) -> Mapping[str, str]:
        """Return the programs by name."""
        raise NotImplementedError

    def new_flow(self, datapath: PyDatapath, datapath_info: DatapathInfo) -> OfFlow:
        """Return the object that gets the reports of a new flow."""
        raise NotImplementedError


class OfFlow(Protocol):
    def on_report(self, r: Report) -> None: ...


class DatapathInfo:
    """What is known of a flow when it begins. Ports are 0: agents here do not see them."""

    def __init__(self, flow: Flow) -> None:
        self.sock_id, self.init_cwnd, self.mss = flow.number, flow.cwnd_bytes, flow.mss
        self.src_ip, self.dst_ip = (int(ipaddress.ip_address(end)) for end in (flow.source, flow.destination))
        self.src_port = self.dst_port = 0


class PyDatapath:
    """The datapath of one flow."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def set_program(self, program_name: str, fields: Sequence[tuple[str, int]] | None = None) -> None:
        """Let the flow run this program, and set fields. Raises ValueError."""
        self._flow.set_program(program_name, **_settings(fields or ()))

    def update_field(self, reg_name: str, val: int) -> None:
        """Set Cwnd, Rate or a variable of the program. Raises ValueError."""
        self._flow.set(**_settings([(reg_name, val)]))

    def update_fields(self, fields: Sequence[tuple[str, int]]) -> None:
        """Set several at once. Raises ValueError."""
        self._flow.set(**_settings(fields))


def _settings(fields: Sequence[tuple[str, int]]) -> dict[str, Any]:
    ours = {"Cwnd": ("cwnd_bytes", 1), "Rate": ("rate_bps", 8)}
    named = [(*ours.get(name, (name, 1)), value) for name, value in fields]
    return {name: value * factor for name, factor, value in named}


def start(ipc: str, alg: object) -> None:
    """Note what the file wants to run: the datapath of the run is used, whatever `ipc` says."""
    del ipc
    _started.append(alg)


@contextlib.contextmanager
def importable() -> Iterator[list[object]]:
    """Let a file import this module while the block executes it; yield what it has started by then."""
    before = {name: sys.modules.get(name) for name in NAMES}
    sys.modules.update(dict.fromkeys(NAMES, sys.modules[__name__]))
    _started.clear()
    try:
        yield _started
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def adapted(given: object) -> type[Algorithm]:
    """Return the class that runs a congestion control of portus. Raises UsageError."""
    if not isinstance(given, AlgBase):
        raise UsageError(f"start() got {type(given).__name__}; give an object of a class of portus.AlgBase")
    alg = given
    for name in METHODS:
        if getattr(type(alg), name) is getattr(AlgBase, name):
            raise UsageError(f"{type(alg).__name__} has no method {name}")

    class Adapted(Algorithm):
        programs = alg.datapath_programs()

        def on_create(self, flow: Flow) -> None:
            flow.state = alg.new_flow(PyDatapath(flow), DatapathInfo(flow))

        def on_report(self, flow: Flow, report: Report) -> None:
            flow.state.on_report(report)

    return Adapted
