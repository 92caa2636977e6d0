"""Takes what hosts send at the egress of their NICs, by a BPF program, into a ring that the core reads.

The usual way in is longer: veth, softirq on the core's CPU, packet socket. Frames that the program leaves
alone still come that way, and all of them do where this kernel has no such thing (Linux >= 5.17 has). What a
host sends is then not seen by packet sockets in that host (tcpdump), which come after the program.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from common.errors import RunError
from engines.emulation.congestion.libbpf import LibbpfError, library
from engines.emulation.kernel import rtnl
from engines.emulation.kernel.clsact import attach_at_egress, detach
from engines.emulation.kernel.netns import map_in_netns

OBJECT = Path(__file__).parent / "objects" / "egress.o"
NAME = "refabric egress"


class EgressError(Exception):
    """Why frames take the packet socket, in words."""


class Egress:
    """The loaded program and its maps; `attach` puts it on hosts' NICs. Raises EgressError.

    Filters end with the hosts' namespaces, program and maps with the last of filters and descriptors.
    """

    def __init__(self, path: Path = OBJECT) -> None:
        if not path.exists():
            raise EgressError(f"{path.name} is not compiled: run setup/install.sh")
        self._attached: list[tuple[int, int]] = []
        self._object = 0
        try:
            self._load(path)
        except LibbpfError as error:
            self.close()
            raise EgressError(f"{error.strerror}: {' '.join(error.said[-2:])}".strip(": ")) from error
        except OSError as error:
            raise EgressError(f"libbpf cannot be loaded: {error}") from error

    def _load(self, path: Path) -> None:
        libbpf = library()
        opened = libbpf.pointer(f"opening {path.name}", "bpf_object__open_file", os.fsencode(path), None)
        self._object = opened
        libbpf.number(f"loading {path.name}", "bpf_object__load", opened)
        program = libbpf.pointer(
            "looking for the program", "bpf_object__find_program_by_name", opened, b"take"
        )
        self._program_fd = libbpf.number("its descriptor", "bpf_program__fd", program)
        self.frames_fd, self.state_fd = (self._map(name) for name in (b"frames", b"state"))

    def _map(self, name: bytes) -> int:
        found = library().pointer(f"map {name.decode()}", "bpf_object__find_map_by_name", self._object, name)
        return library().number(f"map {name.decode()}", "bpf_map__fd", found)

    def attach(self, nics: Sequence[tuple[int, int]]) -> None:
        """To these NICs, each (pid in its host's namespace, interface index there)."""
        try:
            map_in_netns([(pid, partial(self._attach, pid, ifindex)) for pid, ifindex in nics])
        except OSError as error:
            self.close()
            raise EgressError(f"attaching a BPF program at egress: {error}") from error

    def _attach(self, pid: int, ifindex: int) -> None:
        with rtnl.route_socket() as route:
            attach_at_egress(route, ifindex, self._program_fd, NAME)
        self._attached.append((pid, ifindex))

    def close(self) -> None:
        """Hosts' frames take their usual way again."""
        attached, self._attached = self._attached, []
        with suppress(RunError):  # a namespace that has ended took its filters along
            map_in_netns([(pid, partial(_detach, ifindex)) for pid, ifindex in attached])
        if self._object:
            library().call("bpf_object__close", self._object)
            self._object = 0


def _detach(ifindex: int) -> None:
    with rtnl.route_socket() as route:
        try:
            detach(route, ifindex)
        except OSError as error:
            if error.errno not in {errno.ENODEV, errno.ENOENT, errno.EINVAL}:  # the interface may be gone
                raise
