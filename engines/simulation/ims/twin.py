"""The simulated IMS: servers of the core (fabric/ims/) behind the interface of engines/ims/run.py.

Messages take the links' delay between two hosts. They do not queue in the network, whose links are
nearly idle: a call is about 20 kB.
"""

from __future__ import annotations

from engines.ims.readings import PCSCF, ROLES, Calls, Instance, Reading
from fabric._core import Ims
from fabric.plan import PS_PER_US
from fabric.readings import ImsCounts, ImsServer
from workloads.sip import POISSON, SipSettings

PS_PER_S = 10**12
PS_PER_MS = 10**9


class Twin:
    """A System in virtual time. Instances that have drained are left out of readings."""

    def __init__(self, settings: SipSettings, hop_us: float, seed: int) -> None:
        self._settings = settings
        slower = PS_PER_US / settings.share
        self._core = Ims(
            pcscf_ps=round(settings.message_us * slower),
            scscf_ps=round(settings.scscf_us * slower),
            lookup_ps=round(settings.lookup_us * slower),
            workers=settings.workers,
            buffer=settings.buffer,
            hop_ps=round(hop_us * PS_PER_US),
            hold_ps=settings.hold_ms * PS_PER_MS,
            patience_ps=settings.patience_ms * PS_PER_MS,
            poisson=settings.arrivals == POISSON,
            seed=seed,
        )
        for role, count in zip(ROLES, (settings.pcscf, settings.scscf), strict=True):
            for _ in range(count):
                self._core.add(role)
        self._now_s = 0.0

    @property
    def events(self) -> int:
        return self._core.counts()["events"]

    def set_rates(self, calls_per_s: float, registrations_per_s: float) -> None:
        self._core.set_rates(calls_per_s, registrations_per_s)

    def wait(self, until_s: float) -> None:
        self._now_s = until_s
        self._core.advance(round(until_s * PS_PER_S))

    def fills(self) -> dict[str, float]:
        servers = self._core.servers()
        return {role: max(each["fill"] for each in servers if each["role"] == role) for role in ROLES}

    def read(self) -> Reading:
        when_ps, took_ps = self._core.take_setups()
        setups = zip((when_ps / PS_PER_S).tolist(), (took_ps / PS_PER_MS).tolist(), strict=True)
        counts: dict[str, int] = dict.fromkeys(ROLES, 0)
        instances = []
        for server in self._core.servers():
            counts[server["role"]] += 1
            if server["active"] or server["dialogs"] or not server["idle"]:
                instances.append(self._instance(server, counts[server["role"]]))
        return Reading(self._now_s, _calls(self._core.counts()), tuple(instances), tuple(setups))

    def add(self, role: str) -> None:
        draining = [i for i, each in self._of(role) if not each["active"]]
        if draining:
            self._core.activate(draining[-1])
        else:
            self._core.add(role)

    def drain(self, role: str) -> None:
        self._core.drain([i for i, each in self._of(role) if each["active"]][-1])

    def _of(self, role: str) -> list[tuple[int, ImsServer]]:
        return [(i, each) for i, each in enumerate(self._core.servers()) if each["role"] == role]

    def _instance(self, server: ImsServer, number: int) -> Instance:
        """Return the reading of a server; its CPU is busy with messages, not while it waits for a look-up."""
        settings = self._settings
        message_us = settings.message_us if server["role"] == PCSCF else settings.scscf_us
        return Instance(
            role=server["role"],
            number=number,
            waiting=server["fill"] * settings.buffer,
            fill=server["fill"],
            dropped=server["dropped"],
            cpu_s=server["served"] * message_us / settings.share / 1e6,
            busy_s=server["busy_ps"] / PS_PER_S,
            workers=1 if server["role"] == PCSCF else settings.workers,
            dialogs=server["dialogs"],
            active=server["active"],
        )


def _calls(counts: ImsCounts) -> Calls:
    return Calls(
        offered=counts["offered"],
        completed=counts["completed"],
        failed=counts["failed"],
        registrations=counts["registrations"],
        registered=counts["registered"],
        registrations_failed=counts["registrations_failed"],
        retransmitted=counts["retransmissions"],
    )
