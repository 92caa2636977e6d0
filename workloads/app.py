"""An app: programs of the user's on hosts, as the text that a spec holds; `read` makes it of a TOML file.

    background = "one_to_one"          # any flows beside the programs
    files = ["server.py"]              # beside the TOML; each program has them in its own folder

    [programs.server]                  # a group; groups start in this order
    hosts = "first"
    run = "{python} server.py {port}"
    port = 8000
    ready = "port"

    [programs.client]
    hosts = "others"
    run = "{python} client.py {ip:server} {port:server}"
    measure = "json"

A group with `ready` starts before traffic, and the next one waits for it. Any other starts `start_s` after
the opening of the measured window. Results need no file to be read again. Pure but for `read`.
"""

from __future__ import annotations

import functools
import hashlib
import random
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from common.errors import UsageError
from common.files import text_of
from common.text import did_you_mean

NAME = "app"
MAX_PROGRAMS = 1024
MAX_FILES_BYTES = 256 << 10
"""Of all files of an app together: each program has a copy, and so has each spec."""
MAX_TEXT = 4096
OTHERS = "others"
PORT, LINE, FILE = "port", "line:", "file:"
"""Kinds of readiness: a port that listens, a text in a line of output, a file in the program's folder."""
JSON = "json"
"""Of `measure`: each line of stdout that is a JSON object gives its numbers."""

T = TypeVar("T", bound=msgspec.Struct)
_Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Programs with one command.

    `hosts`: first, first:N, last, all, random:N, others (those of no other group), others:N (at random), or
    names with `*`, separated by commas. `each` programs run on every host. `poisson_per_s` and `spread_s` say
    how they start: at random, or evenly over a time. `ends_run`: the run ends when all of them have ended.
    `measure` is JSON or a regular expression whose named groups are numbers.
    """

    run: tuple[_Text, ...]
    name: str = ""
    hosts: _Text = "all"
    each: Annotated[int, msgspec.Meta(ge=1, le=MAX_PROGRAMS)] = 1
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    ready: _Text = ""
    ready_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 20.0
    start_s: Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)] = 0.0
    spread_s: _Seconds = 0.0
    poisson_per_s: _Seconds = 0.0
    ends_run: bool = False
    measure: _Text = ""
    exit_codes: tuple[Annotated[int, msgspec.Meta(ge=0, le=255)], ...] = (0,)
    env: dict[_Text, _Text] = {}
    package: _Text = ""
    """The Debian package that has the program, for the error where it is missing."""


class App(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Groups in the order of their start, the text of a workload beside them, and files: texts by name."""

    programs: tuple[Group, ...]
    background: _Text = ""
    files: dict[str, str] = {}


@dataclass(frozen=True)
class Program:
    """One program of a group: its number in the group, its host and its port there (0: it has none)."""

    group: Group
    number: int
    host: str
    port: int
    start_s: float

    def __str__(self) -> str:
        """Return `program client 3 on p0e0h1`."""
        return f"program {self.group.name} {self.number} on {self.host}"


def read(what: str, path: Path) -> str:
    """Return the text of the app in a TOML file. Raises UsageError with the place in it."""
    try:
        table = tomllib.loads(text_of(what, path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{what}: {error}") from None
    groups = table.pop("programs", None)
    if not isinstance(groups, dict) or not groups:
        raise UsageError(f'{what}: it has no programs: write [programs.server], then run = "..."')
    found = tuple(_group(f"{what}, programs.{name}", name, of) for name, of in groups.items())
    names = table.pop("files", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f'{what}, files: write a list of names, ["server.py"]')
    files = {name: _file(f"{what}, files: {name[:80]}", path.parent, name) for name in names}
    if sum(map(len, files.values())) > MAX_FILES_BYTES:
        raise UsageError(f"{what}, files: they are larger than {MAX_FILES_BYTES >> 10} KiB together")
    app = _converted(what, {**table, "programs": found, "files": files}, App)
    for group in app.programs:
        _check(f"{what}, programs.{group.name}", group, app)
    return msgspec.json.encode(app).decode()


def _group(what: str, name: str, of: object) -> Group:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,29}", name):
        raise UsageError(f"{what[:100]}: a name has letters, digits, - and _, at most 30")
    if not isinstance(of, dict) or "name" in of:
        raise UsageError(f"{what}: write a table with run, hosts ... and without a name")
    run = of.get("run")
    if isinstance(run, str):
        try:
            of = {**of, "run": shlex.split(run)}
        except ValueError as error:
            raise UsageError(f"{what}.run: {error}") from None
    return _converted(what, {**of, "name": name}, Group)


def _converted(what: str, value: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `$")
        field = where.rstrip("`").removeprefix(".")
        known = [name for name in kind.__struct_fields__ if name != "name"]
        unknown = re.search(r"unknown field `(.*)`", words)
        hint = f"; {did_you_mean(unknown[1], known) or 'there are '}{', '.join(known)}" if unknown else ""
        raise UsageError(f"{what}{f'.{field}' if field else ''}: {words}{hint}") from None


def _file(what: str, folder: Path, name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        raise UsageError(f"{what}: name a file beside this one, with letters, digits, dots, - and _")
    return text_of(what, folder / name, MAX_FILES_BYTES)


def _check(what: str, group: Group, app: App) -> None:
    if not group.run or not group.run[0]:
        raise UsageError(f"{what}.run: it is empty; write a command")
    if group.spread_s and group.poisson_per_s:
        raise UsageError(f"{what}: give spread_s or poisson_per_s, not both")
    if group.ready and group.ready != PORT and not group.ready.startswith((LINE, FILE)):
        raise UsageError(f'{what}.ready: write "{PORT}", "{LINE}TEXT" or "{FILE}NAME", not "{group.ready}"')
    if group.ready == PORT and not group.port:
        raise UsageError(f'{what}: ready = "port" needs a port, e.g. port = 8000')
    if group.ready and (group.ends_run or group.start_s or group.spread_s or group.poisson_per_s):
        raise UsageError(f"{what}: with ready, programs start before traffic and last to the end of the run")
    try:
        pattern = re.compile(group.measure)
    except re.error as error:
        raise UsageError(f"{what}.measure: {error}") from None
    if group.measure and group.measure != JSON and not pattern.groupindex:
        raise UsageError(f'{what}.measure: write "json", or name what it finds: "took (?P<ms>[0-9.]+)"')
    known = {each.name for each in app.programs}
    for part in (*group.run, *group.env.values()):
        for name, of in _PLACE.findall(part.replace("{{", "")):
            if name not in PLACES or (of and name not in OF_GROUPS):
                raise UsageError(
                    f"{what}: {{{name}{of}}} is unknown; there are {_all_places()}; write {{{{ for {{"
                )
            if of and of[1:] not in known:
                raise UsageError(f"{what}: {{{name}{of}}}: there is no group {of[1:]}")
    for name in group.env:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(f"{what}.env: {name[:80]} is not a name of a variable")


PLACES = ("host", "ip", "ips", "port", "peer", "number", "count", "seed", "rate_mbps", "python")
OF_GROUPS = ("ip", "ips", "port", "count")
"""Those that may name a group, {ip:server}: of its program with the same number, or of all."""
_PLACE = re.compile(r"\{([a-z_]+)(:[A-Za-z0-9_-]+)?\}")


def _all_places() -> str:
    return ", ".join(f"{{{name}}}" + (f" {{{name}:GROUP}}" if name in OF_GROUPS else "") for name in PLACES)


@functools.lru_cache(maxsize=8)
def parsed(text: str) -> App:
    """Return the app of a spec. Raises UsageError for a text that `read` does not write."""
    if not text:
        raise UsageError(f"workload {NAME}: name a file of programs, e.g. --workload {NAME}:web.toml")
    try:
        app = msgspec.json.decode(text, type=App)
        for group in app.programs:
            _check(f"workload {NAME}, programs.{group.name}", group, app)
    except msgspec.DecodeError as error:
        raise UsageError(f"workload {NAME}: its text is damaged: {error}; run it again") from None
    return app


def placed(app: App, hosts: Sequence[str], seed: int) -> tuple[Program, ...]:
    """Return all programs in the order of their groups; equal arguments give equal programs.

    Raises UsageError for a group that finds no host, and for too many programs.
    """
    chosen: dict[str, list[str]] = {}
    for group in app.programs:
        if group.hosts.partition(":")[0] != OTHERS:
            chosen[group.name] = _chosen(group, hosts, random.Random(f"{seed}/{group.name}/hosts"))
    taken = {host for some in chosen.values() for host in some}
    found: list[Program] = []
    ports: dict[tuple[str, int], int] = {}
    for group in app.programs:
        on = chosen.get(group.name) or _others(
            group, [host for host in hosts if host not in taken], random.Random(f"{seed}/{group.name}/hosts")
        )
        starts_s = _starts_s(group, len(on) * group.each, random.Random(f"{seed}/{group.name}/starts"))
        if len(found) + len(starts_s) > MAX_PROGRAMS:
            raise UsageError(f"workload {NAME}: it starts more than {MAX_PROGRAMS} programs; use fewer hosts")
        for number, start_s in enumerate(starts_s):
            host = on[number % len(on)]
            beside = ports.setdefault((host, group.port), 0)
            ports[host, group.port] += 1
            port = group.port + beside if group.port else 0
            found.append(Program(group, number, host, port, start_s))
    return tuple(found)


def _others(group: Group, left: Sequence[str], rng: random.Random) -> list[str]:
    what = f"workload {NAME}, programs.{group.name}: hosts {group.hosts}"
    if not left:
        raise UsageError(f"{what}: none is left")
    _, colon, count = group.hosts.partition(":")
    if not colon:
        return list(left)
    if not count.isdecimal() or not 1 <= int(count) <= len(left):
        raise UsageError(f"{what}: give a number from 1 to {len(left)}")
    return sorted(rng.sample(left, int(count)), key=left.index)


def _chosen(group: Group, hosts: Sequence[str], rng: random.Random) -> list[str]:
    what = f"workload {NAME}, programs.{group.name}: hosts {group.hosts}"
    kind, colon, count = group.hosts.partition(":")
    if colon and kind in {"first", "random"}:
        if not count.isdecimal() or not 1 <= int(count) <= len(hosts):
            raise UsageError(f"{what}: give a number from 1 to {len(hosts)}")
        number = int(count)
        return list(hosts[:number]) if kind == "first" else sorted(rng.sample(hosts, number), key=hosts.index)
    simple = {"first": hosts[:1], "last": hosts[-1:], "all": hosts}
    if group.hosts in simple:
        return list(simple[group.hosts])
    found: dict[str, None] = {}
    for pattern in map(str.strip, group.hosts.split(",")):
        some = [host for host in hosts if fnmatchcase(host, pattern)]
        if not some:
            known = ("first", "last", "all", OTHERS, *hosts)
            meant = did_you_mean(pattern, known) or f"the network's hosts are {hosts[0]} to {hosts[-1]}"
            raise UsageError(f"{what}: no host is called {pattern[:80]}; {meant}")
        found |= dict.fromkeys(some)
    return list(found)


def _starts_s(group: Group, count: int, rng: random.Random) -> list[float]:
    """Return when each program starts, in seconds from the opening of the window."""
    if group.poisson_per_s:
        starts_s = [group.start_s]
        while len(starts_s) < count:
            starts_s.append(starts_s[-1] + rng.expovariate(group.poisson_per_s))
        return starts_s
    return [group.start_s + number * group.spread_s / count for number in range(count)]


@dataclass(frozen=True)
class Setting:
    """What commands may name: addresses by host, the point's seed and rate, and the Python that runs."""

    programs: Sequence[Program]
    addresses: Mapping[str, str]
    seed: int
    rate_mbps: float
    python: str

    def filled(self, program: Program, text: str) -> str:
        """Return a text of the program's group with values for its places."""
        return re.sub(r"\{\{|" + _PLACE.pattern, functools.partial(self._value, program), text)

    def _value(self, program: Program, found: re.Match[str]) -> str:
        if found[0] == "{{":
            return "{"
        of = (found[2] or f":{program.group.name}")[1:]
        group = [each for each in self.programs if each.group.name == of]
        own = program if program.group.name == of else group[program.number % len(group)]
        peer = group[(own.number + 1) % len(group)]
        values: dict[str, object] = {
            "host": program.host,
            "ip": self.addresses[own.host],
            "ips": ",".join(self.addresses[each.host] for each in group),
            "port": own.port,
            "peer": self.addresses[peer.host],
            "number": program.number,
            "count": len(group),
            "seed": own_seed(self.seed, program),
            "rate_mbps": f"{self.rate_mbps:g}",
            "python": self.python,
        }
        return str(values[found[1]])


def own_seed(seed: int, program: Program) -> int:
    """Return a number of 31 bits that is the program's own."""
    text = f"{seed}/{program.group.name}/{program.number}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
