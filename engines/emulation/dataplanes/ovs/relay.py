"""Relay between a controller outside and Open vSwitch in the private namespaces (`--controller remote:PORT`).

    switches -- tcp 127.0.0.1:6653 (inside) ... tcp 127.0.0.1:PORT (outside) -- the controller

Inside, this module is a program (relay.py PORT CHANNEL). It accepts the switches' connections and hands each
one (SCM_RIGHTS, unix(7)) through a pair of sockets to the process that starts the run, which joins it to one
to the controller. A pair has no name in any folder, so nothing is left when a process is killed. Where the
controller closes a connection, or accepts none, the program inside prints LOST.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence

from common.errors import HostUnfitError

HOST = "127.0.0.1"
CHANNEL = "REFABRIC_CONTROLLER_CHANNEL"
"""The environment variable with the descriptor of the pair's inner end."""
LOST = "the controller closed a connection"
START_S = 10.0
_CHUNK = 1 << 16


@contextlib.contextmanager
def outside(port: int) -> Iterator[list[int]]:
    """Join what comes through a pair of sockets to the controller at `port`; return the pair's inner end.

    Raises HostUnfitError if nothing listens there.
    """
    check_listening(port)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_serve, args=(loop, ours, port), daemon=True)
        thread.start()
        try:
            yield [theirs.fileno()]
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(START_S)


def take(given: Sequence[int]) -> None:
    """Remember the pair's inner end, if the run was given one, for the program inside."""
    for fd in given:
        os.environ[CHANNEL] = str(fd)


def check_listening(port: int) -> None:
    """Raise HostUnfitError unless a program of this machine listens at `port`."""
    try:
        socket.create_connection((HOST, port), timeout=START_S).close()
    except OSError as error:
        raise HostUnfitError(
            f"--controller remote:{port}: connecting to {HOST}:{port}: {error.strerror or error}; start the "
            "controller first, and let it listen there"
        ) from error


def _serve(loop: asyncio.AbstractEventLoop, channel: socket.socket, port: int) -> None:
    asyncio.set_event_loop(loop)
    joined: set[asyncio.Task[None]] = set()

    def take() -> None:
        try:
            _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
        except BlockingIOError:
            return
        for fd in descriptors:
            task = loop.create_task(_join(socket.socket(fileno=fd), port, channel))
            joined.add(task)
            task.add_done_callback(joined.discard)

    loop.add_reader(channel, take)
    loop.run_forever()
    loop.remove_reader(channel)
    for task in joined:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*joined, return_exceptions=True))
    loop.close()


async def _join(switch: socket.socket, port: int, channel: socket.socket) -> None:
    """Copy between a switch's connection and one to the controller until either ends."""
    switch.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=switch)
    async with _closing(writer):
        try:
            other_reader, other_writer = await asyncio.open_connection(HOST, port)
        except OSError:
            _lost(channel)
            return  # the switch sees its connection close, and tries again
        async with _closing(other_writer):
            away = asyncio.ensure_future(_copy(reader, other_writer))
            back = asyncio.ensure_future(_copy(other_reader, writer))
            try:
                await asyncio.wait({away, back}, return_when=asyncio.FIRST_COMPLETED)
                if not away.done():
                    _lost(channel)
            finally:
                away.cancel()
                back.cancel()


def _lost(channel: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the program inside has ended
        channel.send(b"-")


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


def inside(port: int, channel: int) -> None:
    """Accept the switches at `port` and hand their connections out, until the process ends."""
    with socket.socket(fileno=channel) as out, socket.create_server((HOST, port)) as server:
        while True:
            ready, _, _ = select.select([server, out], [], [])
            if out in ready:
                if not out.recv(1):
                    return
                print(LOST, flush=True)
            if server in ready:
                connection, _ = server.accept()
                with connection:
                    socket.send_fds(out, [b"+"], [connection.fileno()])


if __name__ == "__main__":
    inside(int(sys.argv[1]), int(sys.argv[2]))
