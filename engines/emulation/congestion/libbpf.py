"""A minimal binding of libbpf: load an object, and keep it registered or attached while a descriptor is open.

It works with libbpf 1.1 (Debian 12) and 1.3 (Ubuntu 24.04). A struct_ops map with BPF_F_LINK is registered
by a BPF link (Linux >= 6.4). Its registration ends when the link's descriptor is closed, at the latest with
the process. Without that flag a registration outlives its process. From version 1.2 on, libbpf sets the flag
for another section name; here it is set on the map, which works with all versions.
Sources: libbpf's libbpf.h, kernel/bpf/bpf_struct_ops.c, net/ipv4/bpf_tcp_ca.c.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
from collections import deque
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

BPF_F_LINK = 1 << 13
BPF_STRUCT_OPS, TCX_INGRESS, TCX_EGRESS = 44, 46, 47
"""enum bpf_attach_type."""
ENOTSUPP = 524
"""An errno that only the kernel defines; libc has no name for it."""
WARNINGS = 1
"""enum libbpf_print_level: messages below this level are warnings or errors."""
_INFO_BYTES, _TIME_AT = 216, 192
"""struct bpf_prog_info (include/uapi/linux/bpf.h): up to recursion_misses; run_time_ns, then run_cnt."""
_RUN_TIME = 0
"""enum bpf_stats_type."""
LOG_LINES = 40
LONGEST_MESSAGE = 1 << 20

_PRINT = ctypes.CFUNCTYPE(c_int, c_int, c_void_p, c_void_p)
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "bpf_object__open_file": (c_void_p, (c_char_p, c_void_p)),
    "bpf_object__find_map_by_name": (c_void_p, (c_void_p, c_char_p)),
    "bpf_object__find_program_by_name": (c_void_p, (c_void_p, c_char_p)),
    "bpf_object__load": (c_int, (c_void_p,)),
    "bpf_object__close": (None, (c_void_p,)),
    "bpf_map__set_map_flags": (c_int, (c_void_p, c_uint32)),
    "bpf_map__fd": (c_int, (c_void_p,)),
    "bpf_map__update_elem": (c_int, (c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_uint64)),
    "bpf_map__lookup_elem": (c_int, (c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_uint64)),
    "bpf_map__attach_struct_ops": (c_void_p, (c_void_p,)),
    "bpf_program__fd": (c_int, (c_void_p,)),
    "bpf_map_update_elem": (c_int, (c_int, c_void_p, c_void_p, c_uint64)),
    "ring_buffer__new": (c_void_p, (c_int, c_void_p, c_void_p, c_void_p)),
    "ring_buffer__poll": (c_int, (c_void_p, c_int)),
    "ring_buffer__consume": (c_int, (c_void_p,)),
    "ring_buffer__free": (None, (c_void_p,)),
    "bpf_link__fd": (c_int, (c_void_p,)),
    "bpf_link__disconnect": (None, (c_void_p,)),
    "bpf_link__destroy": (c_int, (c_void_p,)),
    "bpf_enable_stats": (c_int, (c_int,)),
    "bpf_link_create": (c_int, (c_int, c_int, c_int, c_void_p)),
    "bpf_prog_test_run_opts": (c_int, (c_int, c_void_p)),
    "bpf_obj_get_info_by_fd": (c_int, (c_int, c_void_p, c_void_p)),
    "libbpf_set_print": (c_void_p, (_PRINT,)),
    "libbpf_num_possible_cpus": (c_int, ()),
}


class LibbpfError(OSError):
    """A call of libbpf failed: its errno, what was attempted, and libbpf's last messages."""

    def __init__(self, number: int, attempt: str, said: tuple[str, ...] = ()) -> None:
        reason = "operation not supported" if abs(number) == ENOTSUPP else os.strerror(abs(number))
        super().__init__(abs(number), f"{attempt}: {reason}")
        self.said = said


class Library:
    """libbpf.so.1 with its signatures and its last messages. Raises OSError if it is not installed."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libbpf.so.1", use_errno=True)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self.said: deque[str] = deque(maxlen=LOG_LINES)
        self._vsnprintf = ctypes.CDLL(None).vsnprintf
        self._vsnprintf.argtypes = (c_void_p, c_size_t, c_void_p, c_void_p)
        self._print = _PRINT(self._hear)  # Keep a reference: libbpf calls it until the process ends.
        self.call("libbpf_set_print", self._print)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call one of `_SIGNATURES` without a check of its result."""
        return getattr(self._library, name)(*arguments)

    def pointer(self, attempt: str, name: str, *arguments: Any) -> int:
        """Call a function that returns a pointer. Raises LibbpfError with errno if it is null."""
        result = self.call(name, *arguments)
        if not result:
            raise self._error(ctypes.get_errno() or errno.ENOENT, attempt)
        return int(result)

    def number(self, attempt: str, name: str, *arguments: Any) -> int:
        """Call a function that returns a number. Raises LibbpfError if it is negative."""
        result = int(self.call(name, *arguments))
        if result < 0:
            raise self._error(ctypes.get_errno() if result == -1 else result, attempt)
        return result

    def _error(self, number: int, attempt: str) -> LibbpfError:
        said = tuple(self.said)
        self.said.clear()
        return LibbpfError(number, attempt, said)

    def _hear(self, level: int, text: int, arguments: int) -> int:
        # A va_list is a pointer on x86-64; on arm64 it is passed by reference.
        if level < WARNINGS:
            buffer = ctypes.create_string_buffer(LONGEST_MESSAGE)
            self._vsnprintf(buffer, len(buffer), text, arguments)
            lines = buffer.value.decode(errors="replace").splitlines()
            self.said.extend(line for line in lines[-LOG_LINES:] if line.strip())
        return 0


@functools.cache
def library() -> Library:
    """Return the Library of this process."""
    return Library()


def timed() -> int:
    """Let the kernel time BPF programs until the returned descriptor is closed. Raises LibbpfError.

    This adds about 50 ns to each call.
    """
    return library().number("timing BPF programs", "bpf_enable_stats", _RUN_TIME)


class BpfObject:
    """A compiled BPF object with one per-CPU array, `counters`. Raises LibbpfError from every method.

    Its links end when it is closed, or with the process. A congestion control has a struct_ops map, `ops`,
    and `namespaces`, whose sockets it takes; open sockets keep using it after its end.
    """

    def __init__(self, path: Path) -> None:
        self._libbpf = library()
        self._links: list[int] = []
        self._name = path.name
        self._object = self._libbpf.pointer(
            f"opening {path.name}", "bpf_object__open_file", os.fsencode(path), None
        )

    def close(self) -> None:
        """End the links and unload the object."""
        while self._links:
            os.close(self._links.pop())
        if self._object:
            self._libbpf.call("bpf_object__close", self._object)
            self._object = 0

    def load(self, registers: bool = False) -> None:
        """Load it into the kernel, which verifies it; with `registers`, to be registered by a link."""
        if registers:
            flags = (self._map(b"ops"), BPF_F_LINK)
            self._libbpf.number(f"preparing {self._name}", "bpf_map__set_map_flags", *flags)
        self._libbpf.number(f"loading {self._name}", "bpf_object__load", self._object)

    def counters(self, fields: int, name: bytes = b"counters") -> list[int]:
        """Return the first element of a per-CPU map, `fields` 64-bit numbers, summed over CPUs."""
        cpus = self._libbpf.number("counting CPUs", "libbpf_num_possible_cpus")
        key, values = c_uint32(0), (c_uint64 * (fields * cpus))()
        self._libbpf.number(
            f"reading the counters of {self._name}",
            "bpf_map__lookup_elem",
            *(self._map(name), ctypes.byref(key), ctypes.sizeof(key)),
            *(ctypes.byref(values), ctypes.sizeof(values), 0),
        )
        return [sum(values[field::fields]) for field in range(fields)]

    def set(self, value: int) -> None:
        """Write the first element of the array `settings`; the object must be loaded."""
        key, number = c_uint32(0), c_uint64(value)
        self._libbpf.number(
            f"writing the settings of {self._name}",
            "bpf_map__update_elem",
            *(self._map(b"settings"), ctypes.byref(key), ctypes.sizeof(key)),
            *(ctypes.byref(number), ctypes.sizeof(number), 0),
        )

    def map_fd(self, name: bytes) -> int:
        """Return the descriptor of a map, which belongs to this object."""
        return int(self._libbpf.call("bpf_map__fd", self._map(name)))

    def runs(self, program: str) -> tuple[int, int]:
        """Return how often a program has run, and the ns that it took, while the kernel timed programs."""
        info, size = ctypes.create_string_buffer(_INFO_BYTES), c_uint32(_INFO_BYTES)
        arguments = (self.program_fd(program), ctypes.byref(info), ctypes.byref(size))
        self._libbpf.number(f"reading about {program}", "bpf_obj_get_info_by_fd", *arguments)
        ns, calls = struct.unpack_from("QQ", info, _TIME_AT)
        return calls, ns

    def program_fd(self, program: str) -> int:
        """Return the descriptor of a program, which belongs to this object."""
        found = self._libbpf.pointer(
            f"looking for {program} in {self._name}",
            *("bpf_object__find_program_by_name", self._object, program.encode()),
        )
        return int(self._libbpf.call("bpf_program__fd", found))

    def _map(self, name: bytes) -> int:
        return self._libbpf.pointer(
            f"looking for {name.decode()} in {self._name}", "bpf_object__find_map_by_name", self._object, name
        )

    def attach(self, program: str, ifindex: int, where: int) -> None:
        """Attach it to an interface of this thread's network namespace, at TCX_INGRESS or TCX_EGRESS."""
        of_program = self.program_fd(program)
        self._links.append(
            self._libbpf.number(
                f"attaching {self._name}", "bpf_link_create", of_program, ifindex, where, None
            )
        )

    def admit(self, cookie: int) -> None:
        """Let it take sockets of the network namespace with this cookie (bpf/namespaces.h)."""
        key, value = c_uint64(cookie), c_uint32(1)
        self._libbpf.number(
            f"adding a network namespace to {self._name}",
            "bpf_map__update_elem",
            *(self._map(b"namespaces"), ctypes.byref(key), ctypes.sizeof(key)),
            *(ctypes.byref(value), ctypes.sizeof(value), 0),
        )

    def register(self) -> None:
        """Register the congestion control with TCP. errno EEXIST means that the name is in use."""
        attempt, ops = f"registering {self._name}", self._map(b"ops")
        link = self._libbpf.pointer(attempt, "bpf_map__attach_struct_ops", ops)
        of_map = self._libbpf.call("bpf_map__fd", ops)
        of_link = self._libbpf.call("bpf_link__fd", link)
        if of_link == of_map:  # libbpf < 1.2 filled the map, which with BPF_F_LINK does not register it
            of_link = self._libbpf.number(attempt, "bpf_link_create", of_map, 0, BPF_STRUCT_OPS, None)
        self._links.append(of_link)
        # Free the structure but keep the descriptor: destroying a disconnected link does not close it.
        self._libbpf.call("bpf_link__disconnect", link)
        self._libbpf.call("bpf_link__destroy", link)
