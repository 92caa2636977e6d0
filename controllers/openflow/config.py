"""What a controller is started with: a JSON file that the run writes.

    {"topology": "fat_tree", "params": {"k": 4}, "routing": "hashed", "seed": 1, "mode": "reactive",
     "listen": "tcp:127.0.0.1:6653", "control": "/run/.../control.sock", "connect_s": 30}

`listen` may be `unix:/path` as well; `control` may be left out or empty: no control socket then.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

import topos
from common.errors import UsageError
from topos import Topology


class Mode(StrEnum):
    """When rules are made. `REACTIVE`: a flow's along its whole path, when its first packet comes in.
    `PROACTIVE`: tables for all flows, before any; switches choose among equal ways by their own hash.
    `HYBRID`: downward tables before any flow, the way up for each flow when its first packet comes in."""

    REACTIVE = "reactive"
    PROACTIVE = "proactive"
    HYBRID = "hybrid"


def mode_of(name: str) -> Mode:
    """The mode of this name. Raises UsageError if there is none."""
    try:
        return Mode(name)
    except ValueError:
        raise UsageError(f"unknown mode '{name}': choose one of {', '.join(Mode)}") from None


@dataclass(frozen=True)
class ControllerConfig:
    """`seed` is the routing sub-seed, as the fabric's plan has it. `listen` is `tcp:ADDRESS:PORT` or
    `unix:PATH`; `control` a path. `connect_s` bounds the wait for all switches."""

    topology: str
    params: dict[str, int]
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
    """The configuration in this file. Raises UsageError, naming the file, for anything unsuitable in it."""
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
            raise UsageError(f"'{name}' is {value!r}, which is of the wrong type")
    config = ControllerConfig(**{**given, "mode": mode_of(given.get("mode", Mode.REACTIVE))})
    parse_address(config.listen)
    return config


def parse_address(text: str) -> Path | tuple[str, int]:
    """`unix:PATH` as a path, `tcp:ADDRESS:PORT` as address and port. Raises UsageError for anything else."""
    scheme, _, rest = text.partition(":")
    if scheme == "unix" and rest:
        return Path(rest)
    host, _, port = rest.rpartition(":")
    if scheme != "tcp" or not host or not port.isdecimal() or not int(port) < 65536:
        raise UsageError(f"cannot listen on '{text}': write tcp:ADDRESS:PORT or unix:PATH")
    return host, int(port)
