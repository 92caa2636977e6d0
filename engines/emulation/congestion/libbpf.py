"""The little of libbpf that loads a struct_ops object and keeps it registered while a descriptor is open.

Debian 12 has libbpf 1.1, Ubuntu 24.04 has 1.3, and both must do. A struct_ops map with BPF_F_LINK is
registered by a BPF link (Linux >= 6.4) and so for as long as the link's descriptor is open, that is at most
as long as the process lives. Without that flag a registration outlives its process. libbpf asks for the flag
by itself from 1.2 on, for another section name; here it is set on the map, which all versions understand.
Sources: libbpf's libbpf.h, kernel/bpf/bpf_struct_ops.c, net/ipv4/bpf_tcp_ca.c.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections import deque
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

BPF_F_LINK = 1 << 13
BPF_STRUCT_OPS = 44
"""enum bpf_attach_type."""
ENOTSUPP = 524
"""The kernel's own, which libc has no name for."""
WARNINGS = 1
"""enum libbpf_print_level: warnings and what is worse."""
LOG_LINES = 40
LONGEST_MESSAGE = 1 << 20

_PRINT = ctypes.CFUNCTYPE(c_int, c_int, c_void_p, c_void_p)
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "bpf_object__open_file": (c_void_p, (c_char_p, c_void_p)),
    "bpf_object__find_map_by_name": (c_void_p, (c_void_p, c_char_p)),
    "bpf_object__load": (c_int, (c_void_p,)),
    "bpf_object__close": (None, (c_void_p,)),
    "bpf_map__set_map_flags": (c_int, (c_void_p, c_uint32)),
    "bpf_map__fd": (c_int, (c_void_p,)),
    "bpf_map__lookup_elem": (c_int, (c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_uint64)),
    "bpf_map__attach_struct_ops": (c_void_p, (c_void_p,)),
    "bpf_link__fd": (c_int, (c_void_p,)),
    "bpf_link__disconnect": (None, (c_void_p,)),
    "bpf_link__destroy": (c_int, (c_void_p,)),
    "bpf_link_create": (c_int, (c_int, c_int, c_int, c_void_p)),
    "bpf_obj_get_info_by_fd": (c_int, (c_int, c_void_p, c_void_p)),
    "libbpf_set_print": (c_void_p, (_PRINT,)),
    "libbpf_num_possible_cpus": (c_int, ()),
}


class LibbpfError(OSError):
    """What libbpf refused: the errno of it, what was attempted, and the last lines libbpf said about it."""

    def __init__(self, number: int, attempt: str, said: tuple[str, ...] = ()) -> None:
        super().__init__(abs(number), f"{attempt}: {_strerror(abs(number))}")
        self.said = said


def _strerror(number: int) -> str:
    return "operation not supported" if number == ENOTSUPP else os.strerror(number)


class Library:
    """libbpf.so.1 with its signatures, and what it said last. Raises OSError where it is not installed."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libbpf.so.1", use_errno=True)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self.said: deque[str] = deque(maxlen=LOG_LINES)
        self._vsnprintf = ctypes.CDLL(None).vsnprintf
        self._vsnprintf.argtypes = (c_void_p, c_size_t, c_void_p, c_void_p)
        self._print = _PRINT(self._hear)  # kept: libbpf calls it for as long as the process lives
        self.call("libbpf_set_print", self._print)

    def call(self, name: str, *arguments: Any) -> Any:
        """One of `_SIGNATURES`, unchecked."""
        return getattr(self._library, name)(*arguments)

    def pointer(self, attempt: str, name: str, *arguments: Any) -> int:
        """A function that returns a pointer. Raises LibbpfError with errno when that is null."""
        result = self.call(name, *arguments)
        if not result:
            raise self._error(ctypes.get_errno() or errno.ENOENT, attempt)
        return int(result)

    def number(self, attempt: str, name: str, *arguments: Any) -> int:
        """A function that returns a number. Raises LibbpfError when that is negative."""
        result = int(self.call(name, *arguments))
        if result < 0:
            raise self._error(ctypes.get_errno() if result == -1 else result, attempt)
        return result

    def _error(self, number: int, attempt: str) -> LibbpfError:
        said = tuple(self.said)
        self.said.clear()
        return LibbpfError(number, attempt, said)

    def _hear(self, level: int, text: int, arguments: int) -> int:
        # A va_list is a pointer on both x86-64 and arm64, where it is passed by reference.
        if level < WARNINGS:
            buffer = ctypes.create_string_buffer(LONGEST_MESSAGE)
            self._vsnprintf(buffer, len(buffer), text, arguments)
            lines = buffer.value.decode(errors="replace").splitlines()
            self.said.extend(line for line in lines[-LOG_LINES:] if line.strip())
        return 0


@functools.cache
def library() -> Library:
    """The one of this process."""
    return Library()


class Object:
    """A compiled BPF object with one struct_ops map, `ops`, and one per-CPU array, `counters`.

    Closing it, or the end of the process, unregisters what it registered; sockets that use it keep
    it until they are closed. Raises LibbpfError from every method.
    """

    def __init__(self, path: Path) -> None:
        self._libbpf = library()
        self._link = -1
        self._name = path.name
        self._object = self._libbpf.pointer(
            f"opening {path.name}", "bpf_object__open_file", os.fsencode(path), None
        )

    def close(self) -> None:
        """Unregister and unload."""
        if self._link >= 0:
            os.close(self._link)
            self._link = -1
        if self._object:
            self._libbpf.call("bpf_object__close", self._object)
            self._object = 0

    def load(self) -> None:
        """Have the kernel check it and take it."""
        flags = (self._map(b"ops"), BPF_F_LINK)
        self._libbpf.number(f"preparing {self._name}", "bpf_map__set_map_flags", *flags)
        self._libbpf.number(f"loading {self._name}", "bpf_object__load", self._object)

    def register(self) -> None:
        """Give it to TCP. errno EEXIST: the kernel has a congestion control of that name."""
        attempt, ops = f"registering {self._name}", self._map(b"ops")
        link = self._libbpf.pointer(attempt, "bpf_map__attach_struct_ops", ops)
        of_map = self._libbpf.call("bpf_map__fd", ops)
        of_link = self._libbpf.call("bpf_link__fd", link)
        if of_link == of_map:  # libbpf < 1.2 filled the map, which does not register one with BPF_F_LINK
            self._link = self._libbpf.number(attempt, "bpf_link_create", of_map, 0, BPF_STRUCT_OPS, None)
        else:
            self._link = of_link
        # The structure goes, the descriptor stays: a disconnected link is not closed.
        self._libbpf.call("bpf_link__disconnect", link)
        self._libbpf.call("bpf_link__destroy", link)

    def counters(self, fields: int) -> list[int]:
        """The first element of `counters`, `fields` 64-bit numbers, summed over CPUs."""
        cpus = self._libbpf.number("counting CPUs", "libbpf_num_possible_cpus")
        key, values = c_uint32(0), (c_uint64 * (fields * cpus))()
        self._libbpf.number(
            f"reading the counters of {self._name}",
            "bpf_map__lookup_elem",
            *(self._map(b"counters"), ctypes.byref(key), ctypes.sizeof(key)),
            *(ctypes.byref(values), ctypes.sizeof(values), 0),
        )
        return [sum(values[field::fields]) for field in range(fields)]

    def _map(self, name: bytes) -> int:
        return self._libbpf.pointer(
            f"looking for {name.decode()} in {self._name}", "bpf_object__find_map_by_name", self._object, name
        )
