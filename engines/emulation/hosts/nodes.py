"""Mininet's nodes for a fabric: hosts, switches, interfaces and links that start nothing until used.

A small process holds the namespace of a `FabricHost`, a Mininet `Host`. Its shell starts at the first
`cmd()`, so 1024 hosts do not need 1024 shells. A `FabricSwitch` is a set of ports of the data plane. Like
Mininet's Open vSwitch nodes it runs commands in the run's namespace. Mininet reads a node's `shell`, `pid`,
`stdin`, `stdout` and `pollOut`; here these properties start the shell.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
from collections.abc import Callable
from typing import Any, Protocol

from mininet.link import Intf, Link
from mininet.node import Host, Node
from mininet.util import getincrementaldecoder

from common.errors import DeadlineError, RunError
from engines.emulation.dataplanes.dataplane import DataPlane
from engines.emulation.kernel.netns import call_in_netns
from engines.emulation.sandbox.mounts import CLONE_NEWNS, MS_NODEV, MS_NOSUID, mount, unshare

SHELL_S = 10.0
_PROMPT = chr(127)


class _LazyShell(Node):  # type: ignore[misc]
    """A Mininet node whose shell starts on first use."""

    def __init__(self, name: str, holder: int, **params: Any) -> None:
        self.holder = holder
        """Pid of a process in the node's network namespace."""
        self._shell: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._master: Any = None
        self._poller: Any = None
        super().__init__(name, **params)

    @property
    def shell(self) -> subprocess.Popen[bytes] | None:
        if self._shell is None and not self._ended:
            self._start()
        return self._shell

    @shell.setter
    def shell(self, value: object) -> None:
        assert value is None  # Node.__init__ clears it

    @property
    def stdout(self) -> Any:
        return self._master if self.shell else None

    @stdout.setter
    def stdout(self, value: object) -> None:
        assert value is None

    stdin = stdout

    @property
    def pollOut(self) -> Any:
        return self._poller if self.shell else None

    @pollOut.setter
    def pollOut(self, value: object) -> None:
        assert value is None

    @property
    def pid(self) -> int:
        """A process in this node's namespace, for `mnexec -a` and nsenter: always the holder."""
        return self.holder

    @pid.setter
    def pid(self, value: object) -> None:
        assert value is None

    def startShell(self, mnopts: str | None = None) -> None:
        """Do nothing when Node.__init__ calls this; the shell starts later."""
        del mnopts

    def _start(self) -> None:
        """Start bash on a pty as Mininet does, in the node's namespaces, and wait for its prompt."""
        master, self.slave = pty.openpty()
        self._master = os.fdopen(master, "r")
        self._poller = select.poll()
        self._poller.register(self._master)
        self._shell = self._enter(self._spawn_shell)
        self.outToNode[master] = self
        self.inToNode[master] = self
        self.decoder = getincrementaldecoder()
        self.readbuf = ""
        self.waiting = True
        self._await_prompt()
        self.cmd("unset HISTFILE; stty -echo; set +m")

    def _spawn_shell(self) -> subprocess.Popen[bytes]:
        if self.inNamespace:
            unshare(CLONE_NEWNS)
            mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV)
        argv = ["bash", "--norc", "--noediting", "-is", f"mininet:{self.name}"]
        env = {**os.environ, "PS1": _PROMPT}
        fd = self.slave
        return subprocess.Popen(argv, stdin=fd, stdout=fd, stderr=fd, env=env, start_new_session=True)

    def _await_prompt(self) -> None:
        seen = ""
        while self.waiting:
            text = self.monitor(timeoutms=round(SHELL_S * 1000))
            seen += text
            if self.waiting and not text:
                raise DeadlineError(
                    f"starting the shell of {self.name}: no prompt within {SHELL_S:g} s, output {seen!r}"
                )

    def _enter(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Run `start` on a temporary thread in the node's network namespace."""
        return call_in_netns(self.holder, start)

    def popen(self, *args: Any, **kwargs: Any) -> subprocess.Popen[Any]:
        """Run a command (list, string or words) in this node's network namespace, as Mininet's `popen`.

        The program starts directly, in a new session, not through mnexec(1). It sees the run's /sys; a
        program started by `cmd` sees the host's /sys.
        """
        if self.privateDirs:
            running: subprocess.Popen[Any] = Node.popen(self, *args, **kwargs)
            return running
        kwargs.pop("mncmd", None)
        argv = _words(args)
        if kwargs.pop("shell", False):
            argv = [os.environ.get("SHELL", "/bin/bash"), "-c", " ".join(argv)]
        options: dict[str, Any] = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
        }
        options.update(kwargs)
        return self._enter(lambda: self._popen(argv, **options))

    def terminate(self) -> None:
        """Send SIGHUP to the shell and its programs; kill what does not end in time."""
        self._ended = True
        shell, self._shell = self._shell, None
        if shell is None:
            return
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGHUP)
        for table in (self.outToNode, self.inToNode):
            table.pop(self._master.fileno(), None)
        self._master.close()
        os.close(self.slave)
        try:
            shell.wait(1.0)
        except subprocess.TimeoutExpired:
            shell.kill()
            shell.wait(SHELL_S)

    cleanup = terminate

    def config(self, **_params: Any) -> dict[str, Any]:
        """Do nothing: the network configures its hosts when it is built."""
        return {}

    @classmethod
    def setup(cls) -> None:
        """Require nothing beyond what doctor checks."""

    def __repr__(self) -> str:
        interfaces = ",".join(f"{intf.name}:{intf.IP()}" for intf in self.intfList())
        return f"<{type(self).__name__} {self.name}: {interfaces} pid={self.holder}> "


class FabricHost(_LazyShell, Host):  # type: ignore[misc]
    """A host with its own network namespace, real NICs and a real kernel stack."""


class Fabric(Protocol):
    """The part of a network that a switch uses."""

    dataplane: DataPlane

    def set_link(self, link: FabricLink, up: bool) -> None: ...


class FabricSwitch(_LazyShell):
    """A switch of the data plane. Its commands run in the run's namespace, as with Open vSwitch."""

    portBase = 1
    """Number of the first interface; interfaces are numbered like OpenFlow ports (topos/ports.py)."""

    def __init__(self, name: str, fabric: Fabric) -> None:
        self._fabric = fabric
        super().__init__(name, os.getpid(), inNamespace=False)

    def start(self, _controllers: object) -> None:
        """Take all links of the switch up, for the CLI's `switch X start`."""
        self._set_links(True)

    def stop(self, deleteIntfs: bool = False) -> None:
        """Take all links of the switch down, for the CLI's `switch X stop`."""
        del deleteIntfs
        self._set_links(False)

    def connected(self) -> bool:
        return True

    def dpctl(self, *args: str) -> str:
        """Return the output of the CLI's `dpctl dump-flows` and similar commands."""
        return self._fabric.dataplane.dpctl(self.name, *args)

    def _set_links(self, up: bool) -> None:
        for interface in self.intfList():
            self._fabric.set_link(interface.link, up)

    def _enter(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        return start()


class FabricIntf(Intf):  # type: ignore[misc]
    """A configured interface whose properties are known without a process."""

    def __init__(self, name: str, node: _LazyShell, link: FabricLink, ip: str = "", mac: str = "") -> None:
        super().__init__(name, node=node, link=link, mac=mac or None, moveIntfFn=_stay)
        self.ip: str | None = ip or None
        self.prefixLen: str | None = "32" if ip else None

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}

    def updateIP(self) -> str | None:
        return self.ip

    def updateMAC(self) -> str | None:
        return self.mac if self.mac is None else str(self.mac)

    def isUp(self, setUp: bool = False) -> bool:
        del setUp
        return bool(self.link.up)

    def status(self) -> str:
        return "OK" if self.link.up else "DOWN"


class FabricLink(Link):  # type: ignore[misc]
    """Link `index` of the topology, between two nodes; its frames pass through the data plane."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.up = True
        self.intf1: FabricIntf
        self.intf2: FabricIntf

    def stop(self) -> None:
        """Do nothing: the network removes all interfaces at once."""

    def delete(self) -> None:
        raise RunError(f"deleting {self}: it is part of the topology; use `link ... down` instead")


def _stay(_name: str, _node: object) -> None:
    """Do nothing where Mininet would move an interface: it was created in its namespace."""


def _words(args: tuple[Any, ...]) -> list[str]:
    if len(args) == 1 and isinstance(args[0], list):
        return [str(word) for word in args[0]]
    if len(args) == 1:
        return str(args[0]).split()
    return [str(word) for word in args]
