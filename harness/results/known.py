"""What this checkout knows of a stored point: its spec names registered things, with values they can have.

A point written by another version, or by hand, may name others. It is refused here, once, so that whatever
reads points may look names up in the registries.
"""

from __future__ import annotations

import topos
from engines.registry import ENGINES
from harness.options.fields import SPEC_FIELDS
from harness.options.parsers import one_of
from harness.points.baseline import is_baseline
from model.congestion import CONGESTION_CONTROLS, is_known
from model.fields.limits import check_limits
from model.flows import drawn_flows
from model.spec import RunSpec
from topos import from_file
from workloads import matrices


def check(spec: RunSpec) -> None:
    """Raise UsageError for a name or a value in `spec` that this checkout does not know."""
    topos.check(spec.topology.kind, spec.topology.params)
    matrices.check(spec.workload.matrix, spec.workload.params)
    if spec.topology.kind == from_file.KIND or is_baseline(spec):  # others are right if their numbers are
        network = topos.build(spec.topology.kind, spec.topology.params)
        if is_baseline(spec):
            drawn_flows(spec, network)
    one_of("engine", spec.engine, ENGINES)
    if not is_known(spec.transport.cc):
        one_of("congestion control", spec.transport.cc, CONGESTION_CONTROLS)
    check_limits(spec)
    _check_options(spec)


def _check_options(spec: RunSpec) -> None:
    """Check every unusual value of a field that an option sets. Raises UsageError."""
    for field in SPEC_FIELDS:
        value = field.of(spec)
        if value != field.default_value:
            field.check(value)
