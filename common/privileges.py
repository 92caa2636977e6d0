"""The user that this process works for: root drops to it for good, before it reads anything of anybody's.

Started through sudo, the program becomes the user who called sudo. Where root logged in itself, it becomes
the owner of the clone. If that is root, too, it stays root, and works only in folders that nobody else can
change (`check_private`). What needs root is done by the root helper (engines/emulation/sandbox/helper.py).
"""

from __future__ import annotations

import ctypes
import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import UsageError

ROOT = Path(__file__).resolve().parents[1]
"""The clone, or the folder of an installed wheel's packages."""
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 4, 38, 47, 4
_MAX_ID = 2**32 - 2
_MAX_LINKS = 40
_OF_ROOT = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "MAIL")
"""Variables with folders of the user who logged in."""


@dataclass(frozen=True)
class User:
    """An ordinary user: the ids, all groups, and what the user database says of it."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str = ""
    home: str = "/"

    @classmethod
    def of(cls, uid: int, gid: int) -> User:
        """Return the user with this id; one that the database does not have has no other groups."""
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            return cls(uid, gid, (gid,))
        return cls(uid, gid, tuple(os.getgrouplist(entry.pw_name, gid)), entry.pw_name, entry.pw_dir)

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> User | None:
        """The inverse of dataclasses.asdict; None for None."""
        return None if data is None else cls(**{**data, "groups": tuple(data["groups"])})

    def become(self) -> None:
        """Become this user for good: ids, groups, no capabilities, and no program that gives some.

        Raises OSError if anything of root's is left.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # else our own /proc/self would be root's
        if left := _left_of_root(self):
            raise PermissionError(f"becoming user {self.uid}: {left}")

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the environment `variables` of root as one of this user."""
        kept = {name: text for name, text in variables.items() if name not in _OF_ROOT}
        return {**kept, "HOME": self.home, "USER": self.name, "LOGNAME": self.name}


def _left_of_root(user: User) -> str:
    """Return which of this process's rights are not the user's; empty if none."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = {name: text.split() for name, _, text in (line.partition(":") for line in lines)}
    wanted = {
        "Uid": [str(user.uid)] * 4,
        "Gid": [str(user.gid)] * 4,
        "CapPrm": ["0" * 16],
        "CapEff": ["0" * 16],
        "CapAmb": ["0" * 16],
        "NoNewPrivs": ["1"],
    }
    if {int(group) for group in fields["Groups"]} - set(user.groups):
        return f"Groups is {fields['Groups']}"
    return ", ".join(f"{name} is {fields[name]}" for name, right in wanted.items() if fields[name] != right)


def invoking_user(variables: Mapping[str, str], clone: Path = ROOT) -> User | None:
    """Return the user for whom root was started; None if that is root. `variables` are the environment's."""
    uid, gid = _number(variables, "SUDO_UID"), _number(variables, "SUDO_GID")
    if uid and gid is not None:
        return User.of(uid, gid)
    owner = clone.stat()
    return User.of(owner.st_uid, _group_of(owner)) if owner.st_uid else None


def _group_of(owner: os.stat_result) -> int:
    """Return the user's own group; a folder may have another one, such as root's."""
    try:
        return pwd.getpwuid(owner.st_uid).pw_gid
    except KeyError:
        return owner.st_gid or owner.st_uid


def _number(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= 10
    return int(text) if is_number and int(text) <= _MAX_ID else None


def check_private(what: str, path: Path) -> None:
    """Raise UsageError if this is root and somebody else can change what `path` leads to.

    Whether the file exists does not matter. `what` names it in the error. No effect for other users.
    """
    if os.geteuid() == 0 and (why := _shared(path)):
        raise UsageError(
            f"{what}: {why}, and root works only where nobody else can change anything; run the command as "
            "an ordinary user (real hosts: with sudo from that user's account), or choose another folder"
        )


def _shared(path: Path) -> str:
    """Return why somebody else could change what the path leads to; empty if nobody can."""
    left, here, links = list(reversed(path.absolute().parts[1:])), Path("/"), 0
    sticky = False
    while left:
        name = left.pop()
        if name == "..":
            here, sticky = here.parent, False
            continue
        there = here / name
        try:
            found = there.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return f"anybody may make {there}" if sticky else ""
        if found.st_uid:
            return f"{there} belongs to user {found.st_uid}"
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MAX_LINKS:
                return f"{path} has too many links"
            target = there.readlink()
            here = Path("/") if target.is_absolute() else here
            left += reversed([part for part in target.parts if part != "/"])
            continue
        others = found.st_mode & (stat.S_IWOTH | (stat.S_IWGRP if found.st_gid else 0))
        sticky = bool(others) and stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)
        if others and not sticky:
            return f"others may write {there}"
        here = there
    return f"anybody may make files in {path}" if sticky else ""
