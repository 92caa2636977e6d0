"""BPF programs on hosts' interfaces: ranks on the way out, and minTCP's view of losses on the way in.

`stamp` (bpf/stamp.bpf.c) writes the rank of its flow into every segment, where the fabric reads it. The size
of the flow comes from socket storage, which the flow driver writes through `sizes_map`. `hide_sacks` hides
selective acknowledgements, so that a sender finds a loss by its timeout alone, as minTCP does. The programs
are attached by links (TCX, Linux >= 6.6), which end with their descriptors or with the interface. Nothing is
pinned.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial

from common.errors import HostUnfitError, RunError
from engines.emulation.congestion.libbpf import TCX_EGRESS, TCX_INGRESS, BpfObject, LibbpfError
from engines.emulation.congestion.registration import compiled, last_lines
from engines.emulation.kernel.namespaces import HostRef, map_in_netns
from topos.topology import Topology

STAMP, HIDE_SACKS = "stamp", "hide_sacks"
_WHERE = {STAMP: TCX_EGRESS, HIDE_SACKS: TCX_INGRESS}
_FIELDS = {STAMP: ("stamped", "unknown", "several_segments"), HIDE_SACKS: ("hidden", "shown")}
NO_MAP = -1


class RankPrograms:
    """The programs of a run by name, attached to all interfaces of all hosts."""

    def __init__(self, loaded: Mapping[str, BpfObject]) -> None:
        self._loaded = loaded

    @property
    def sizes_map(self) -> int:
        """The descriptor of the socket storage for the sizes of flows; NO_MAP if no rank is stamped."""
        return self._loaded[STAMP].map_fd(b"sizes") if STAMP in self._loaded else NO_MAP

    def counts(self) -> dict[str, dict[str, int]]:
        """Return what each program has done so far, over all hosts."""
        return {
            name: dict(zip(_FIELDS[name], program.counters(len(_FIELDS[name])), strict=True))
            for name, program in self._loaded.items()
        }

    def check(self) -> None:
        """Raise RunError if packets left a host without the rank of their own flow and instant."""
        ranks = self.counts().get(STAMP, {})
        if ranks.get("unknown"):
            raise RunError(f"stamping ranks: {ranks['unknown']} segments belong to no known flow")
        if ranks.get("several_segments"):
            raise RunError(f"stamping ranks: {ranks['several_segments']} frames held several segments")


@contextmanager
def on_interfaces(
    names: Sequence[str], hosts: Mapping[str, HostRef], topology: Topology
) -> Iterator[RankPrograms]:
    """Attach STAMP, HIDE_SACKS, both or none to every interface of `hosts` while the context lasts.

    Raises HostUnfitError if the kernel refuses one.
    """
    pids = {nic.name: hosts[topology.nodes[nic.host].name].pid for nic in topology.nics}
    with ExitStack() as stack:
        loaded = {name: stack.enter_context(closing(load(name))) for name in names}
        for name, program in loaded.items():

            def attach(interface: str, name: str = name, program: BpfObject = program) -> None:
                program.attach(name, socket.if_nametoindex(interface), _WHERE[name])

            try:
                map_in_netns([(pid, partial(attach, interface)) for interface, pid in pids.items()])
            except LibbpfError as error:
                what = f"attaching the BPF program {name} to hosts' interfaces"
                raise HostUnfitError(f"{what}: {error.strerror}; it needs Linux 6.6") from error
        yield RankPrograms(loaded)


def load(name: str) -> BpfObject:
    """Load a program into the kernel. Raises HostUnfitError if it refuses."""
    try:
        program = BpfObject(compiled(name))
    except OSError as error:
        raise HostUnfitError(
            f"opening the BPF object {name}: {error.strerror or error}; run: sudo setup/install.sh"
        ) from error
    try:
        program.load()
    except LibbpfError as error:
        program.close()
        raise HostUnfitError(f"BPF program {name}: {error.strerror}\n{last_lines(error)}") from error
    return program
