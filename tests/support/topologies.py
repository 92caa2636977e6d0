"""Topologies with one link unlike the others."""

from __future__ import annotations

import dataclasses
from typing import Any

from topos import Topology


def with_first_link(topology: Topology, **changes: Any) -> Topology:
    """Return the topology with changed fields of its first link."""
    first, *others = topology.links
    return dataclasses.replace(topology, links=(first._replace(**changes), *others))
