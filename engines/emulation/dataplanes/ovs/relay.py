"""Relay between a controller outside and Open vSwitch in the private namespaces (`--controller remote:PORT`).

    switches -- tcp 127.0.0.1:6653 (inside) -- Unix socket -- tcp 127.0.0.1:PORT (outside) -- the controller

A Unix socket with a path is the same in every network namespace. `outside` serves it in the process that
starts the run; inside, this module is a program: relay.py PORT SOCKET.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

from common.errors import HostUnfitError

HOST = "127.0.0.1"
SOCKET = "REFABRIC_CONTROLLER_SOCKET"
"""The environment variable with the path of the socket."""
START_S = 10.0
_CHUNK = 1 << 16
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.contextmanager
def outside(port: int) -> Iterator[list[Path]]:
    """Serve a Unix socket that leads to the controller at `port`; return the folder that must stay visible.

    Raises HostUnfitError if nothing listens there.
    """
    check_listening(port)
    with tempfile.TemporaryDirectory(prefix="refabric-controller-") as folder:
        path = Path(folder) / "openflow"
        ready = threading.Event()
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_serve, args=(loop, path, port, ready), daemon=True)
        thread.start()
        if not ready.wait(START_S):
            raise HostUnfitError(f"--controller remote:{port}: the relay did not start within {START_S:g} s")
        before = os.environ.get(SOCKET)
        os.environ[SOCKET] = str(path)
        try:
            yield [Path(folder)]
        finally:
            os.environ.pop(SOCKET, None) if before is None else os.environ.update({SOCKET: before})
            loop.call_soon_threadsafe(loop.stop)
            thread.join(START_S)


def check_listening(port: int) -> None:
    """Raise HostUnfitError unless a program of this machine listens at `port`."""
    try:
        socket.create_connection((HOST, port), timeout=START_S).close()
    except OSError as error:
        raise HostUnfitError(
            f"--controller remote:{port}: connecting to {HOST}:{port}: {error.strerror or error}; start the "
            "controller first, and let it listen there"
        ) from error


def _serve(loop: asyncio.AbstractEventLoop, path: Path, port: int, ready: threading.Event) -> None:
    asyncio.set_event_loop(loop)

    async def connect() -> Stream:
        return await asyncio.open_connection(HOST, port)

    server = loop.run_until_complete(asyncio.start_unix_server(joined_to(connect), path))
    ready.set()
    loop.run_forever()
    server.close()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def joined_to(
    connect: Callable[[], Awaitable[Stream]],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Return a function that joins each new connection to one that `connect` makes."""

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with _closing(writer):
            try:
                other_reader, other_writer = await connect()
            except OSError:
                return  # the switch sees its connection close, and tries again
            async with _closing(other_writer):
                ends = {asyncio.ensure_future(_copy(reader, other_writer)),
                        asyncio.ensure_future(_copy(other_reader, writer))}  # fmt: skip
                _, open_ends = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for end in open_ends:
                    end.cancel()

    return join


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()


async def inside(port: int, path: str) -> None:
    """Serve the switches at `port` until the process ends."""

    async def connect() -> Stream:
        return await asyncio.open_unix_connection(path)

    server = await asyncio.start_server(joined_to(connect), HOST, port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(inside(int(sys.argv[1]), sys.argv[2]))
