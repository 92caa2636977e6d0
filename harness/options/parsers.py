"""Parsers of options: each turns the text of one option into its value, or raises a UsageError of one line.

A parser takes the flag, for the message, and the text. A value that already has its type is checked too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from ccp.names import SUFFIX, OwnAlgorithm
from common.errors import UsageError
from engines.registry import ENGINES, SIMULATOR
from harness.baseline import MATRIX
from harness.options.user_files import OF_FILE, expanded
from model.congestion import CONGESTION_CONTROLS
from model.spec import (
    CANONICAL,
    LIMITS,
    MAX_SUBFLOWS,
    NAMES,
    Limits,
    LinkEvent,
    TransportSpec,
    WorkloadSpec,
    check_name,
    stated,
    value_words,
)
from workloads import matrices

Parser = Callable[[str, Any], Any]

ENGINE = "mininet"
BOTH = "both"
BY_MACHINE: Literal["auto"] = "auto"
MAX_K = 80
"""128 000 hosts, which the flow-level models carry. What an engine cannot carry, it refuses."""
_ENDLESS = 10**15
_COMMA = re.compile(r",(?!\s*\w+=)")
CHOICES = stated(NAMES)
"""Known names of fields of the spec, and what is typed before one, by path."""
FORMS = stated(CANONICAL)
"""Functions that return the canonical form of a text of the spec, by the field's path."""


def sweep_workloads() -> tuple[str, ...]:
    """Return the traffic matrices that a sweep can run; the baseline is not one of them."""
    return tuple(name for name in matrices.MATRICES if name != MATRIX)


def one_of(option: str, value: str, known: Collection[str]) -> str:
    """Return `value` when it is known. Raises UsageError that lists the known ones."""
    check_name(f"{option} ", value, known)
    return value


def _within(option: str, limits: Limits, value: float) -> float:
    if wrong := limits.problem(value):
        raise UsageError(f"{option} {value_words(value)}: {wrong}")
    return value


def choice(known: Collection[str]) -> Parser:
    """Return the parser of a name among `known`."""
    return lambda option, text: one_of(option, str(text), known)


def whole(minimum: int, unit: str, maximum: float = _ENDLESS) -> Parser:
    """Return the parser of a whole number from `minimum` to `maximum`."""

    def parse(option: str, text: Any) -> int:
        try:
            value = int(text)
        except ValueError:
            raise UsageError(f"{option} {text}: give a whole number{f' of {unit}' if unit else ''}") from None
        return int(_within(option, Limits(minimum, maximum, unit), value))

    return parse


def count(maximum: int) -> Parser:
    """Return the parser of a count from 1 to `maximum`."""

    def parse(option: str, text: Any) -> int:
        value = int(whole(-_ENDLESS, "")(option, text))
        if not 1 <= value <= maximum:
            raise UsageError(f"{option} {value}: must be in 1..{maximum}")
        return value

    return parse


def limited(path: str) -> Parser:
    """Return the parser of a number in the range of the spec's field at `path` (model/spec.py)."""
    limits = LIMITS[path]
    read = (
        whole(-_ENDLESS, limits.unit)
        if limits.whole
        else lambda option, text: _float(option, text, limits.unit)
    )

    def parse(option: str, text: Any) -> float:
        value: float = read(option, text)
        return _within(option, limits, value)

    return parse


def of_field(path: str) -> Parser:
    """Return the parser of a number in the range, of a text, or of a known name, of the spec's field at
    `path`."""
    if path in FORMS:
        return lambda _option, text: FORMS[path](str(text))
    return limited(path) if path in LIMITS else choice(CHOICES[path][0])


def percent(path: str) -> Parser:
    """Return the parser of a percentage; the field at `path` is a share."""
    limits = LIMITS[path]
    in_percent = Limits(100 * limits.least, 100 * limits.most, "%")
    return lambda option, text: _within(option, in_percent, _float(option, text, "%")) / 100


def _float(option: str, text: Any, unit: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option} {text}: give a number of {unit}") from None


def several(what: str, given: str | Sequence[Any], parse: Callable[[Any], Any]) -> Any:
    """Parse values, of a text those between its commas, each once; return a single one as it is.

    A comma before `NAME=` is inside a value: `fifo,codel:target_us=1000,ecn=1` are two.
    """
    parts = [part.strip() for part in _COMMA.split(given)] if isinstance(given, str) else given
    if isinstance(given, str) and "" in parts:
        raise UsageError(f"{what}: a value is missing before or after a comma")
    values = tuple(dict.fromkeys(map(parse, parts)))
    return values if len(values) > 1 else values[0]


def ints(option: str, text: str) -> tuple[int, ...]:
    """Parse `1,2,8`, `1-8` and mixtures; keep the order, and each number once."""
    values: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or len(low + high) > 8:
            raise UsageError(
                f"{option} {text}: {part.strip()!r} is not a number or a range; write e.g. 1,2,8 or 1-8"
            )
        first, last = int(low), int(high or low)
        if last < first or last - first > 1000:
            raise UsageError(
                f"{option} {text}: the range {part.strip()} is empty or too long; write e.g. 1-8"
            )
        values.extend(range(first, last + 1))
    return tuple(dict.fromkeys(values))


def ks(option: str, text: str) -> tuple[int, ...]:
    """Parse FatTree arities: even, from 4 to MAX_K."""
    if any(part.count("-") for part in text.split(",")):
        raise UsageError(f"{option} {text}: list the sizes, e.g. --k 4,6,8")
    found = ints(option, text)
    for k in found:
        if not 4 <= k <= MAX_K or k % 2:
            raise UsageError(
                f"{option} {text}: a FatTree needs an even k from 4 to {MAX_K}, not {k}; e.g. --k 4,8"
            )
    return found


def subflows(option: str, text: str) -> tuple[int, ...]:
    """Parse subflow counts from 1 to 32; 1 is plain TCP."""
    counts = ints(option, text)
    for count in counts:
        if not 1 <= count <= MAX_SUBFLOWS:
            raise UsageError(f"{option} {text}: {count} is outside 1..{MAX_SUBFLOWS} (1 is plain TCP)")
    return counts


def ccs(option: str, text: str) -> tuple[str, ...]:
    """Parse congestion controls, or files of a user's own algorithms; keep the order, and each once."""
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise UsageError(f"{option} {text}: a name is missing; write e.g. --cc reno,lia")
    found: dict[str, None] = {}
    for name in names:
        if not name.endswith(SUFFIX):
            found[one_of(option, name, CONGESTION_CONTROLS)] = None
            continue
        from ccp.loading import load, text_of  # noqa: PLC0415 -- with its compilers, which few runs need

        own = OwnAlgorithm(Path(name).name, text_of(Path(name)))
        load(own, own.text)  # to find its errors
        found[own] = None
    files = {name for name in names if name.endswith(SUFFIX)}
    if len({Path(name).name for name in files}) < len(files):
        raise UsageError(f"{option} {text}: two files have the same name, which labels results; rename one")
    return tuple(found)


def engines(option: str, text: str) -> tuple[str, ...]:
    """Parse engines; keep the order, and each once. `both` means the simulator and real hosts."""
    known = (*ENGINES, BOTH)
    names = (one_of(option, part.strip(), known) for part in text.split(","))
    each = (name for part in names for name in ((SIMULATOR, ENGINE) if part == BOTH else (part,)))
    return tuple(dict.fromkeys(each))


def workloads(option: str, text: str) -> tuple[WorkloadSpec, ...]:
    """Parse traffic matrices: `name`, `name:value`, `name:parameter=value:...` or `all`."""
    everywhere = [name for name in sweep_workloads() if matrices.MATRICES[name].in_all]
    return named_workloads(option, everywhere if text == "all" else text.split(","))


def named_workloads(option: str, texts: Sequence[str]) -> tuple[WorkloadSpec, ...]:
    """Parse traffic matrices, `name` or with parameters; keep the order, and each once."""
    known = sweep_workloads()
    chosen: dict[object, WorkloadSpec] = {}
    for text in texts:
        one_of(option, text.partition(":")[0].strip(), known)
        name, colon, path = text.strip().partition(":")
        if colon and name in OF_FILE:
            try:
                of_file = OF_FILE[name](path)
            except UsageError as error:
                raise UsageError(f"{option}: {error}") from None
            chosen.setdefault((name, of_file.params["name"]), of_file)
            continue
        try:
            name, params = matrices.parse(expanded(text))
        except UsageError as error:
            raise UsageError(f"{option} {text}: {error}") from None
        chosen.setdefault(matrices.label(name, params), WorkloadSpec(name, params))
    return tuple(chosen.values())


def rate(option: str, text: Any) -> float | Literal["auto"]:
    """Parse a link rate in Mb/s, or `auto`."""
    if text == BY_MACHINE:
        return BY_MACHINE
    try:
        rate_mbps = float(text)
    except ValueError:
        rate_mbps = math.nan
    if not (math.isfinite(rate_mbps) and rate_mbps > 0):
        raise UsageError(f"{option} {text}: give Mb/s above 0, e.g. --rate 5, or --rate auto")
    return _within(option, LIMITS["link.rate_mbps"], rate_mbps)


def sysctls(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse `name=value` with names of `net.*`: only those belong to a host's network namespace."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        key, wanted = name.strip(), " ".join(value.split())
        if found.setdefault(key, wanted) != wanted:
            raise UsageError(f"{option} {text}: {key} is {found[key]} already; give it once")
    return dict(TransportSpec(sysctls=found).sysctls)


def events(option: str, texts: tuple[str, ...]) -> tuple[LinkEvent, ...]:
    """Parse link events: `10:p0a0-c0:0.5` leaves the link between the two nodes half its rate, 10 s after the
    start of traffic; without a share it is cut. The engines check that the nodes exist."""
    return tuple(_event(option, text) for text in texts)


def _event(option: str, text: str) -> LinkEvent:
    time_s, _, rest = text.partition(":")
    nodes, _, share = rest.partition(":")
    a, dash, b = (part.strip() for part in nodes.partition("-"))
    try:
        return LinkEvent(float(time_s), a if dash else "", b, float(share or 0))
    except ValueError:
        raise UsageError(
            f"{option} {text}: write SECONDS:NODE-NODE[:SHARE], e.g. --event 10:p0a0-c0 for a cut after "
            "10 s, or :0.5 at its end for half the rate"
        ) from None
