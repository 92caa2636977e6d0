"""A real IMS behind the interface of engines/ims/calls.py."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import time
from collections.abc import Mapping
from functools import partial

from common.errors import RunError
from engines.emulation.kernel.namespaces import HostRef, call_in_netns
from engines.emulation.programs import RunningPrograms
from engines.emulation.sandbox.inside import WORK
from engines.ims.calls import PCSCF, ROLES, SCSCF, Calls, ImsReading, Instance
from engines.ims.programs import (
    CALLEES_PORT,
    FILES,
    POLL_S,
    TRUESIZE,
    Kamailio,
    Users,
    look_up_s,
    redis_commands,
    service_s,
    start_kamailio,
    start_redis,
)
from topos.topology import Topology
from workloads.sip import SipSettings, roles_of

USERS = 2000
PROBES = 30
BURST = 120
"""Messages of a burst that measures a service time; fewer than a receive buffer holds."""
TOOLS_S = 30
SIZED_S = 2.0
MAX_WORDS = 200
TRANSACTION_S = 5.0
"""How long Kamailio keeps a transaction that has ended (wt_timer)."""
_SIZE = re.compile(r"rb(\d+)")


class RealIms:
    """A System of real programs.

    `ready_ms` are the times from the start of each instance until it answered. `times_us` are measured: a
    P-CSCF's service of a `message`, an S-CSCF's CPU time for one (`scscf`), a `lookup`.
    """

    def __init__(
        self,
        settings: SipSettings,
        topology: Topology,
        hosts: Mapping[str, HostRef],
        programs: RunningPrograms,
    ) -> None:
        """Prepare for the `hosts` of a network that runs, by name."""
        names = topology.host_names
        users, hss, pcscfs, scscfs = roles_of(names, 1)
        self.settings = settings
        self._programs = programs
        self.ready_ms: list[float] = []
        self.times_us = {"message": 0.0, "scscf": 0.0, "lookup": 0.0}
        self.running: dict[str, list[Kamailio]] = {role: [] for role in ROLES}
        self._started = dict.fromkeys(ROLES, 0)
        self._hosts = {PCSCF: [hosts[name] for name in pcscfs], SCSCF: [hosts[name] for name in scscfs]}
        self._addresses = {name: topology.nics_of(topology.index(name))[0].ip for name in names}
        self._own, self._hss_address, self._hss_host = (
            self._addresses[users],
            self._addresses[hss],
            hosts[hss],
        )
        values = {"HOLD_MS": str(settings.hold_ms), "PATIENCE_MS": str(settings.patience_ms)}
        self._users = Users(programs, hosts[users], self._own, WORK, values)
        self._library = WORK / "slow_receive.so"
        self._t0_s = 0.0
        self._rates = 0.0, 0.0

    def start(self) -> None:
        """Start HSS, instances and callees, and wait until all answer."""
        WORK.mkdir(parents=True)
        os.chdir(WORK)  # SIPp writes response times into the working directory
        flags = ["-O2", "-shared", "-fPIC", "-o", str(self._library)]
        argv = ["gcc", *flags, str(FILES / "slow_receive.c"), "-ldl"]
        made = subprocess.run(argv, capture_output=True, text=True, timeout=TOOLS_S, check=False)
        if made.returncode:
            raise RunError(f"compiling slow_receive.c: {' '.join(made.stderr.split())[-MAX_WORDS:]}")
        rows = (f"u{i};[authentication username=u{i} password=s{i}];{self._contact}\n" for i in range(USERS))
        (WORK / "users.csv").write_text("RANDOM\n" + "".join(rows))
        passwords = "".join(f"SET pw:u{i} s{i}\n" for i in range(USERS))
        start_redis(self._programs, self._hss_host, WORK, passwords)
        (WORK / "dispatcher.list").write_text("")
        for _ in range(self.settings.scscf):
            self._launch(SCSCF)
        self._write_list()
        for _ in range(self.settings.pcscf):
            self._launch(PCSCF)
        self._register_all()
        self._users.start_callees()

    def measure(self) -> None:
        """Measure `times_us` while nothing else runs."""
        users, own = self._users.host, self._own
        burst = min(BURST, max(2, self.settings.buffer * 2 // 3))
        proxy, registrar = (self.running[role][0] for role in ROLES)
        message_s = call_in_netns(users.pid, partial(service_s, proxy.address, own, burst))
        before_s = registrar.cpu_s()
        call_in_netns(users.pid, partial(service_s, registrar.address, own, burst))
        scscf_s = (registrar.cpu_s() - before_s) / burst
        look_up = partial(look_up_s, self._hss_address)
        lookup_s = statistics.median(call_in_netns(registrar.host.pid, look_up) for _ in range(PROBES))
        self.times_us = {"message": 1e6 * message_s, "scscf": 1e6 * scscf_s, "lookup": 1e6 * lookup_s}

    def set_rates(self, calls_per_s: float, registrations_per_s: float) -> None:
        """Share the rates among active P-CSCFs; the first call starts the clock."""
        self._rates = calls_per_s, registrations_per_s
        active = [each for each in self.running[PCSCF] if each.active]
        for each in self.running[PCSCF]:
            share = each.active / len(active)
            self._users.set_rate(each.name, each.address, "uac", calls_per_s * share)
            self._users.set_rate(each.name, each.address, "register", registrations_per_s * share)
        if not self._t0_s:
            self._t0_s = time.monotonic()

    def wait(self, until_s: float) -> None:
        time.sleep(max(0.0, self._t0_s + until_s - time.monotonic()))
        self._programs.check()

    def fills(self) -> dict[str, float]:
        return {role: max(each.fill for each in self.running[role] if each.active) for role in ROLES}

    def read(self) -> ImsReading:
        now_s = time.monotonic() - self._t0_s if self._t0_s else 0.0
        for role in ROLES:
            self._retire(role)
        instances = tuple(self._instance(role, each) for role in ROLES for each in self.running[role])
        setups = [
            (when_s - self._t0_s, took_ms)
            for each in self._users.generators.values()
            if each.kind == "uac"
            for when_s, took_ms in each.new_times()
        ]
        return ImsReading(now_s, self._calls(), instances, setups)

    def add(self, role: str) -> None:
        """Start an instance, or reactivate one that drains, and balance new dialogs over all."""
        draining = [each for each in self.running[role] if not each.active]
        if draining:
            draining[-1].active, draining[-1].quiet_since_s = True, None
        else:
            self._launch(role)
        self._balance(role)

    def drain(self, role: str) -> None:
        [each for each in self.running[role] if each.active][-1].active = False
        self._balance(role)

    def cpu_s(self, role: str) -> float:
        """Return the CPU time of this machine that running instances of a function have used."""
        return sum(each.cpu_s() for each in self.running[role])

    @property
    def _contact(self) -> str:
        return f"{self._own}:{CALLEES_PORT}"

    def _launch(self, role: str) -> None:
        self._started[role] += 1
        taken = {each.host for each in self.running[role]}
        host = next(each for each in self._hosts[role] if each not in taken)
        slow_ns = round(1000 * self.settings.message_us / self.settings.share) if role == PCSCF else 0
        size_bytes = self.settings.buffer * TRUESIZE
        env = {"LD_PRELOAD": str(self._library), "SLOW_NS": str(slow_ns), "BUFFER_BYTES": str(size_bytes)}
        values = {
            "FOLDER": str(WORK),
            "ADDRESS": self._addresses[host.name],
            "HSS": self._hss_address,
            "CHILDREN": str(1 if role == PCSCF else self.settings.workers),
        }
        began_s = time.monotonic()
        server = start_kamailio(self._programs, role, self._started[role], host, values, env)
        self.running[role].append(server)
        server.wait()
        self._programs.prefer(server.pids)
        self.ready_ms.append(1000 * (time.monotonic() - began_s))
        server.size_bytes = _sized(host, size_bytes)

    def _balance(self, role: str) -> None:
        if role == SCSCF:
            self._write_list()
            for each in self.running[PCSCF]:
                each.ask("dispatcher.reload")
            return
        self._register_all()
        self.set_rates(*self._rates)

    def _write_list(self) -> None:
        active = [each.address for each in self.running[SCSCF] if each.active]
        text = "".join(f"1 sip:{address}:5060\n" for address in active)
        (WORK / "dispatcher.list").write_text(text)

    def _register_all(self) -> None:
        """Put every user behind one of the active P-CSCFs, as if it had registered there."""
        proxies = [each.address for each in self.running[PCSCF] if each.active]
        lines = "".join(
            f"SET loc:u{i} <sip:u{i}@{self._contact}>|<sip:{proxies[i % len(proxies)]};lr>\n"
            for i in range(USERS)
        )
        call_in_netns(self._hss_host.pid, lambda: redis_commands("127.0.0.1", lines))

    def _retire(self, role: str) -> None:
        """End drained instances that keep no dialog: a call that is held has no transaction, so one must be
        missing for longer than calls are held."""
        held_s = self.settings.hold_ms / 1000 + TRANSACTION_S
        now_s = time.monotonic()
        for each in [one for one in self.running[role] if not one.active]:
            if int(each.ask("tm.stats")["current"]):
                each.quiet_since_s = None
            elif each.quiet_since_s is None:
                each.quiet_since_s = now_s
            elif now_s - each.quiet_since_s > held_s:
                self._programs.end(each.process)
                self.running[role].remove(each)

    def _instance(self, role: str, each: Kamailio) -> Instance:
        """Return the reading of an instance. The processor of a P-CSCF is the emulated slow one."""
        used_bytes, dropped = each.waiting()
        served = sum(int(count) for count in each.ask("stats.fetch", *_RECEIVED).values())
        if role == PCSCF:
            busy_s = served * self.times_us["message"] / 1e6
        else:
            lookups = sum(int(count) for count in each.ask("stats.fetch", _LOOKUPS).values())
            busy_s = (lookups * self.times_us["lookup"] + served * self.times_us["scscf"]) / 1e6
        return Instance(
            role=role,
            number=each.number,
            waiting=used_bytes / TRUESIZE,
            fill=used_bytes / each.size_bytes,
            dropped=dropped,
            cpu_s=busy_s if role == PCSCF else each.cpu_s(),
            busy_s=busy_s,
            workers=1 if role == PCSCF else self.settings.workers,
            dialogs=int(each.ask("tm.stats")["current"]),
            active=each.active,
        )

    def _calls(self) -> Calls:
        every = [(each.kind, each.counts()) for each in self._users.generators.values()]
        calls, registrations = ([one for kind, one in every if kind == name] for name in ("uac", "register"))
        return Calls(
            offered=sum(one.offered for one in calls),
            completed=sum(one.completed for one in calls),
            failed=sum(one.failed for one in calls),
            registrations=sum(one.offered for one in registrations),
            registered=sum(one.completed for one in registrations),
            registrations_failed=sum(one.failed for one in registrations),
            retransmitted=sum(one.retransmitted for _, one in every),
            age_s=statistics.fmean([one.age_s for one in calls]) if calls else 0.0,
        )


_RECEIVED = ("core.rcv_requests", "core.rcv_replies")
_LOOKUPS = "script.lookups"


def _sized(host: HostRef, wanted_bytes: int) -> int:
    """Wait until the receive buffer of the SIP socket on a host has its size. Raises RunError."""
    end_s = time.monotonic() + SIZED_S
    while (found := call_in_netns(host.pid, _buffer_bytes)) != wanted_bytes:
        if time.monotonic() > end_s:
            raise RunError(
                f"sizing the buffer of {host.name}'s SIP socket: {found} bytes, not {wanted_bytes}"
            )
        time.sleep(POLL_S)
    return found


def _buffer_bytes() -> int:
    """Return the size of the receive buffer of the SIP socket in this namespace."""
    argv = ["ss", "-lunmH", "sport = :5060"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TOOLS_S, check=False)
    sizes = [int(size) for size in _SIZE.findall(done.stdout)]
    if done.returncode or not sizes:
        raise RunError(f"reading the buffer of a SIP socket: {done.stderr.strip() or 'ss shows none'}")
    return min(sizes)
