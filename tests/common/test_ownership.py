"""Owners of what root makes: the owner of its folder or, where that is root, the user who called sudo."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common import folders, ownership


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "5678")
    return monkeypatch


def test_the_owner_of_the_folder_goes_before_the_caller_of_sudo(
    tmp_path: Path, root: pytest.MonkeyPatch
) -> None:
    found = tmp_path.stat()
    whose = (found.st_uid, found.st_gid) if found.st_uid else (1234, 5678)
    assert ownership.heir(tmp_path) == whose
    assert ownership.heir(Path("/")) == (1234, 5678)
    root.setattr(os, "geteuid", lambda: 1000)
    assert ownership.heir(Path("/")) is None


@pytest.mark.parametrize("odd", ["", "alice", "-1", "1.5", "٣", "0", "99999999999", "4294967295", "1 2"])
@pytest.mark.parametrize("name", ["SUDO_UID", "SUDO_GID"])
def test_an_odd_sudo_variable_is_no_user(root: pytest.MonkeyPatch, name: str, odd: str) -> None:
    root.setenv(name, odd)
    if (name, odd) == ("SUDO_GID", "0"):
        assert ownership.sudo_user() == (1234, 0)
    else:
        assert ownership.sudo_user() is None
        assert ownership.home() == Path.home()


def test_the_home_is_the_user_databases(root: pytest.MonkeyPatch) -> None:
    root.setenv("SUDO_UID", "4294000000")
    root.setenv("SUDO_USER", "nobody-of-this-name")
    assert ownership.home() == Path.home()
    root.delenv("HOME")
    assert ownership.home().is_absolute()


def test_owners_are_given_up_where_the_file_system_has_none(tmp_path: Path, root: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: object, **_options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    root.setattr(os, "fchown", refused)
    root.setattr(os, "chown", refused)
    folders.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
