"""Mininet's CLI with support for piped commands.

Mininet's CLI passes everything readable on stdin to the program that runs on a host. On a terminal that is
the user's input for the program. On a pipe it would be the next commands, which would be lost.
"""

from __future__ import annotations

import sys

from mininet.cli import CLI
from mininet.log import error, output

from common.errors import RefabricError
from engines.emulation.hosts.network import FabricNet
from engines.emulation.hosts.nodes import FabricHost, FabricSwitch


class FabricCLI(CLI):  # type: ignore[misc]
    """Read commands until `exit` or the end of stdin; starts at once, as Mininet's CLI does."""

    def __init__(self, net: FabricNet) -> None:
        if not sys.stdin.isatty():
            self.prompt = ""
            CLI.readlineInited = True  # Do not write ~/.mininet_history from scripts.
        super().__init__(net, stdin=sys.stdin)

    def onecmd(self, line: str) -> bool:
        """Execute one command; print its error and continue if it fails."""
        try:
            return bool(super().onecmd(line))
        except RefabricError as failure:
            error(f"*** {failure}\n")
            return False

    def waitForNode(self, node: FabricHost | FabricSwitch) -> None:
        """Print a command's output until it ends; Ctrl-C interrupts the command."""
        if self.isatty():
            super().waitForNode(node)
            return
        while node.waiting:
            try:
                output(node.monitor())
            except KeyboardInterrupt:
                node.sendInt()

    def do_EOF(self, line: str) -> str:
        """End the CLI at the end of piped commands, without an empty line."""
        return str(super().do_EOF(line)) if self.isatty() else "end of input"
