"""Networks in files, by suffix. To add a format, write its module and its line in READERS.

A reader turns a file's text into nodes and links as networkx.node_link_data writes them, each with its place
in the file for errors; graph.py checks them and makes the text of a network of them.
"""

from __future__ import annotations

import re
from pathlib import Path

from common.errors import UsageError
from common.files import label_of, text_of
from topos import from_file
from topos.readers import containerlab, graphml, hpcc, htsim, node_link
from topos.readers.graph import network

READERS = {
    ".json": node_link.read,
    ".graphml": graphml.read,
    ".txt": hpcc.read,
    ".topo": htsim.read,
    ".yml": containerlab.read,
    ".yaml": containerlab.read,
}
"""What reads a file with this suffix; a file with any other is node-link JSON."""
MAX_HOSTS_PER_SWITCH = 1000
_HOSTS = re.compile(r",hosts=([^,]*)$")


def parameters_of(text: str) -> dict[str, int | str]:
    """Return the parameters of the topology `file` for `FILE`, or for `FILE,hosts=N`: N hosts at each switch.

    Raises UsageError with the place in the file.
    """
    found = _HOSTS.search(text)
    path = Path(text[: found.start()] if found else text)
    what, hosts, name = f"network {path}", 0, label_of(path)
    if found:
        most = MAX_HOSTS_PER_SWITCH
        if not (found[1].isdecimal() and 1 <= int(found[1]) <= most):
            raise UsageError(f"{what}: hosts={found[1][:40]} must be a number from 1 to {most}")
        hosts = int(found[1])
        name = f"{name[: from_file.MAX_NAME - 10]}-{hosts}hosts"
    nodes, links = READERS.get(path.suffix.lower(), node_link.read)(what, text_of(what, path))
    parameters: dict[str, int | str] = {"name": name, "network": network(what, nodes, links, hosts)}
    try:
        from_file.from_file(name, str(parameters["network"]))
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
    return parameters
