"""Node-link JSON, as networkx.node_link_data writes it; links are called `links` or `edges`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common import stored_json
from common.errors import UsageError
from topos import from_file
from topos.readers.graph import Part


def read(what: str, text: str) -> tuple[list[Part], list[Part]]:
    """Return nodes and links. Raises UsageError."""
    try:
        data = stored_json.loads(text.encode())
    except ValueError as error:
        raise UsageError(f"{what}: it is not JSON: {error}") from None
    if isinstance(data, Mapping) and data.get("directed"):
        raise UsageError(
            f"{what}: directed is true; links carry packets both ways, so give an undirected graph"
        )
    return _part(what, data, "nodes"), _part(what, data, "links", "edges")


def _part(what: str, data: Any, *names: str) -> list[Part]:
    """Return the list under the first of `names` that is there."""
    for name in names:
        if isinstance(data, Mapping) and isinstance(data.get(name), list):
            if len(data[name]) > from_file.MAX_NODES * 4:
                raise UsageError(f"{what}: {name} has {len(data[name])} entries, which is too many")
            return [(f"{what}: {name}[{number}]", entry) for number, entry in enumerate(data[name])]
    raise UsageError(f"{what}: it has no list {' or '.join(names)}; write it with networkx.node_link_data")
