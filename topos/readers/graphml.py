"""GraphML (graphml.graphdrawing.org), as networkx, yEd and the Topology Zoo write it.

Attributes of nodes and links have the names of node-link JSON. The Topology Zoo's LinkSpeedRaw, in bit/s, is
a rate. Nodes are called by their id, or `n` and their number where that is no name of a node.
"""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from common.errors import UsageError
from topos.from_file import LINK_NUMBERS, NODE_ATTRIBUTES
from topos.readers.graph import Part, names

OF_ZOO = frozenset({"LinkSpeed", "LinkSpeedUnits", "LinkType", "LinkLabel", "LinkNote"})
"""What says LinkSpeedRaw again, or is a remark."""
ZOO_RATE = "LinkSpeedRaw"


class _Reader:
    """Collects nodes and links while expat walks through the file."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self.keys: dict[str, str] = {}
        """Names of attributes by the id of their `key`."""
        self.nodes: list[Part] = []
        self.links: list[Part] = []
        self.entry: dict[str, Any] | None = None
        self.attribute, self.words = "", ""

    @property
    def where(self) -> str:
        return f"{self.what}, line {self.parser.CurrentLineNumber}"

    def _start(self, tag: str, given: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if name == "graph" and given.get("edgedefault") == "directed":
            raise UsageError(f"{self.where}: edgedefault is directed; links carry packets both ways")
        if name == "key":
            self.keys[given.get("id", "")] = given.get("attr.name", "")
        elif name == "node":
            self.entry = {"id": given.get("id")}
            self.nodes.append((self.where, self.entry))
        elif name == "edge":
            if given.get("directed") == "true":
                raise UsageError(f"{self.where}: the link is directed; links carry packets both ways")
            self.entry = {"source": given.get("source"), "target": given.get("target")}
            self.links.append((self.where, self.entry))
        elif name in {"hyperedge", "port"}:
            raise UsageError(f"{self.where}: {name} is not read; give links with source and target")
        elif name == "data":
            self.attribute, self.words = self.keys.get(given.get("key", ""), ""), ""

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        if name == "data" and self.entry is not None and self.attribute:
            self._settle(self.entry, self.attribute, self.words.strip())
        elif name in {"node", "edge"}:
            self.entry = None
        if name == "data":
            self.attribute = ""

    def _settle(self, entry: dict[str, Any], name: str, words: str) -> None:
        if "id" in entry:
            if name in NODE_ATTRIBUTES and words:
                entry[name] = words
        elif name == ZOO_RATE:
            entry["rate_mbps"] = _number(words, 1e-6)
        elif name not in OF_ZOO:
            entry[name] = _number(words) if name in LINK_NUMBERS else words

    def _text(self, words: str) -> None:
        if self.attribute:
            self.words += words

    def _entity(self, *_: object) -> None:
        raise UsageError(f"{self.where}: it declares an entity; write the text itself")


def _number(words: str, unit: float = 1) -> float | str:
    try:
        return float(words) * unit
    except ValueError:
        return words


def read(what: str, text: str) -> tuple[list[Part], list[Part]]:
    """Return nodes and links. Raises UsageError."""
    reader = _Reader(what)
    try:
        reader.parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise UsageError(
            f"{what}, line {error.lineno}: it is not XML: {expat.ErrorString(error.code)}"
        ) from None
    return names(reader.nodes, reader.links)
