"""The server of `refabric watch`: the page and its points, on 127.0.0.1, for those who have the token.

Other web pages that the user has open can send requests here. Without the token they get nothing. Under
another name for this address (DNS rebinding) they get nothing either, because the Host header must be this
server's. Requests select from what WatchFolder lists, and never name a file.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from common.errors import RefabricError, UsageError
from harness.results.store import finite
from harness.watch import page
from harness.watch.points import WatchFolder

ADDRESS = "127.0.0.1"
TOKEN = "X-Refabric-Token"
TIMEOUT_S = 10.0
MAX_AT_ONCE = 32
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class WatchServer(ThreadingHTTPServer):
    """Serves the points of one folder; `url` is the only address that opens the page."""

    daemon_threads = True
    request_queue_size = MAX_AT_ONCE

    def __init__(self, points: WatchFolder, title: str, port: int = 0) -> None:
        """Raises UsageError if the port is not available."""
        self.points, self.token = points, secrets.token_urlsafe(24)
        self.html = page.served(title).encode()
        self._lock = threading.Lock()
        self._open: dict[socket.socket, bool] = {}
        """The connections, the oldest first, and whether their request has arrived."""
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise UsageError(
                f"serving on {ADDRESS} port {port}: {error.strerror}; choose another with --port"
            ) from error

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}/?token={self.token}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The values of the Host header under which browsers find it."""
        return f"{ADDRESS}:{self.port}", f"localhost:{self.port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a request in a thread. The oldest connection that has sent none makes room for it when there
        are MAX_AT_ONCE; if there is no such connection, the new one is closed."""
        with self._lock:
            if len(self._open) >= MAX_AT_ONCE:
                idle = next((each for each, has_asked in self._open.items() if not has_asked), None)
                if idle is None:
                    self.shutdown_request(request)
                    return
                del self._open[idle]
                with contextlib.suppress(OSError):
                    idle.shutdown(socket.SHUT_RDWR)
            self._open[request] = False
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)

    def has_asked(self, request: socket.socket) -> None:
        """Note that the request of a connection has arrived."""
        with self._lock:
            if request in self._open:
                self._open[request] = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report nothing: browsers often close connections."""


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer
    timeout = TIMEOUT_S
    server_version, sys_version = "refabric", ""

    def do_GET(self) -> None:
        """Answer one request."""
        self.server.has_asked(self.request)
        if self.headers.get_all("Host") not in [[host] for host in self.server.hosts]:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
            return
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        if url.path == "/":
            if self._has_token(query.get("token", "")):
                self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.html)
            else:
                self._refuse(HTTPStatus.FORBIDDEN, "open the address that refabric watch printed")
            return
        answer = self._answers(query).get(url.path)
        if not self._has_token(self.headers.get(TOKEN, "")):
            self._refuse(HTTPStatus.FORBIDDEN, "the token is missing")
        elif answer is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
        else:
            self._tell(answer)

    def _answers(self, query: dict[str, str]) -> dict[str, Callable[[], Any]]:
        points, of = self.server.points, query.get("id", "")
        return {
            "/points": points.all,
            "/point": lambda: points.point(of),
            "/steps": lambda: points.steps(of, int(query["round"]), max(0, int(query["from"]))),
        }

    def _tell(self, answer: Callable[[], Any]) -> None:
        try:
            text = json.dumps(finite(answer()), separators=(",", ":"), allow_nan=False)
        except (KeyError, ValueError):
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such point any more")
        except (RefabricError, OSError) as error:
            self._refuse(HTTPStatus.CONFLICT, str(error))
        except Exception as error:  # whatever is in a point's files, there is an answer
            self._refuse(HTTPStatus.CONFLICT, f"this point cannot be shown ({type(error).__name__})")
        else:
            self._send(HTTPStatus.OK, "application/json", text.encode())

    def _has_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.server.token.encode())

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._send(status, "text/plain; charset=utf-8", why.encode())

    def _send(self, status: HTTPStatus, kind: str, data: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal belongs to the user."""


def until_interrupted(server: WatchServer) -> None:
    """Serve until Ctrl-C."""
    try:
        server.serve_forever(poll_interval=0.2)
    finally:
        server.server_close()
        server.points.close()
