"""One change to one file of the kernel's source. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from common.errors import RunError


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in the file `path` (relative to the source), because of `why`."""

    path: str
    why: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """Return `text` with the change. Raises RunError unless `old` occurs once and `new` never."""
        found = text.count(self.old)
        if self.new and self.new in text:
            happened = "it has this change already"
        elif found == 1:
            return text.replace(self.old, self.new)
        else:
            first = self.old.strip().splitlines()[0].strip()
            happened = f"`{first}` and what follows it occurs {found} times, not once"
        raise RunError(
            f"changing {self.path} of the kernel's source ({self.why}): {happened}; "
            "this source is not the version that refabric's changes were written for"
        )


def after(path: str, why: str, text: str, added: str) -> Edit:
    """Return the edit that puts `added` after `text`."""
    return Edit(path, why, text, text + added)


def before(path: str, why: str, text: str, added: str) -> Edit:
    """Return the edit that puts `added` before `text`."""
    return Edit(path, why, text, added + text)
