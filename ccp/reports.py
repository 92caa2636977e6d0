"""Reports of a datapath's program, as an algorithm sees them."""

from __future__ import annotations

import dataclasses
import functools
import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ccp.names import ONLY


class Report:
    """One report. The program's fields are attributes: `report.acked`; all of them are in `values`.

    `t_us` is the time of the report on the sender's clock. `program` is the name of the program that made it,
    which is not the flow's any more if the flow's program was changed while the report was on its way.
    """

    __slots__ = ()
    t_us: int
    program: ClassVar[str] = ONLY
    _attributes: ClassVar[Mapping[str, str]] = {}
    """Where each field is, by its name."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> int: ...

    @staticmethod
    def of(t_us: int, values: Mapping[str, int], program: str = ONLY) -> Report:
        """Return a report of these fields, as for a test of an algorithm."""
        return report_kind(tuple(values), program)(t_us, *values.values())

    @property
    def values(self) -> Mapping[str, int]:
        return {name: getattr(self, attribute) for name, attribute in self._attributes.items()}

    def __repr__(self) -> str:
        return f"Report({self.t_us}, {self.values}, {self.program!r})"


@functools.cache
def report_kind(names: tuple[str, ...], program: str) -> Callable[..., Report]:
    """Return the class of a program's reports, to be called with the time and the fields in order.

    Instances have slots instead of a dictionary, which takes a third of the time. A field is in `values` only
    if its name is no name in Python, begins with an underscore, or is one of Report's own.
    """
    attributes = {name: name if _is_free(name) else f"_field{i}" for i, name in enumerate(names)}
    body = {"program": program, "_attributes": attributes, "__module__": __name__}
    fields: Sequence[str] = ("t_us", *attributes.values())
    return dataclasses.make_dataclass(
        "Report", fields, bases=(Report,), namespace=body, slots=True, eq=False, repr=False
    )


def _is_free(name: str) -> bool:
    usable = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
    return usable and name != "t_us" and not hasattr(Report, name)
