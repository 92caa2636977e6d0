"""The controller's configuration: a JSON file that the run writes.

    {"topology": "fat_tree", "params": {"k": 4}, "routing": "hashed", "seed": 1, "mode": "reactive",
     "listen": "tcp:127.0.0.1:6653", "control": "/run/.../control.sock", "connect_s": 30}

`listen` may also be `unix:/path`; without `control` there is no control socket.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

import topos
from common.errors import UsageError
from topos import Topology


class Mode(StrEnum):
    """When rules are installed.

    `REACTIVE`: along a flow's whole path when its first packet arrives. `PROACTIVE`: tables for all flows in
    advance; switches choose among equal paths by their own hash. `HYBRID`: rules towards hosts in advance,
    and the upward rules of each flow when its first packet arrives.
    """

    REACTIVE = "reactive"
    PROACTIVE = "proactive"
    HYBRID = "hybrid"


def mode_of(name: str) -> Mode:
    """Return the mode with this name. Raises UsageError if there is none."""
    try:
        return Mode(name)
    except ValueError:
        raise UsageError(f"unknown mode '{name}': choose one of {', '.join(Mode)}") from None


@dataclass(frozen=True)
class ControllerConfig:
    """A controller's configuration. `seed` is the routing sub-seed, as in the fabric's plan. `listen` is
    `tcp:ADDRESS:PORT` or `unix:PATH`; `control` is a path. `connect_s` limits the wait for all switches."""

    topology: str
    params: Mapping[str, int | str]
    routing: str = "hashed"
    seed: int = 0
    mode: Mode = Mode.REACTIVE
    listen: str = "tcp:127.0.0.1:6653"
    control: str = ""
    connect_s: float = 30.0

    def build(self) -> Topology:
        return topos.build(self.topology, self.params)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)


def read_config(path: Path) -> ControllerConfig:
    """Read the configuration in this file. Raises UsageError with the file's name for invalid content."""
    try:
        given = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"controller configuration {path}: {error}") from error
    try:
        return _config_of(given)
    except UsageError as error:
        raise UsageError(f"controller configuration {path}: {error}") from error


_TYPES: dict[str, type | tuple[type, ...]] = {
    "topology": str,
    "params": dict,
    "routing": str,
    "seed": int,
    "mode": str,
    "listen": str,
    "control": str,
    "connect_s": (int, float),
}


def _config_of(given: Any) -> ControllerConfig:
    if not isinstance(given, dict):
        raise UsageError("must be one JSON object")
    known = [field.name for field in fields(ControllerConfig)]
    if unknown := sorted(set(given) - set(known)):
        raise UsageError(f"unknown key '{unknown[0]}': known are {', '.join(known)}")
    for name in ("topology", "params"):
        if name not in given:
            raise UsageError(f"'{name}' is missing")
    for name, value in given.items():
        if not isinstance(value, _TYPES[name]):
            raise UsageError(f"'{name}' is {value!r}, which has the wrong type")
    config = ControllerConfig(**{**given, "mode": mode_of(given.get("mode", Mode.REACTIVE))})
    parse_address(config.listen)
    return config


def parse_address(text: str) -> Path | tuple[str, int]:
    """Return a path for `unix:PATH`, address and port for `tcp:ADDRESS:PORT`. Raises UsageError."""
    scheme, _, rest = text.partition(":")
    if scheme == "unix" and rest:
        return Path(rest)
    host, _, port = rest.rpartition(":")
    if scheme != "tcp" or not host or not port.isdecimal() or not int(port) < 65536:
        raise UsageError(f"cannot listen on '{text}': write tcp:ADDRESS:PORT or unix:PATH")
    return host, int(port)
