"""A thin client of headless Chromium over its DevTools protocol: a pipe, no port and no library.

https://chromedevtools.github.io/devtools-protocol/ ; messages end with a NUL byte on descriptors 3 and 4.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_S = 60.0
LACKING = "there is no Chromium: sudo apt-get install chromium"


def program() -> str | None:
    """Return Chromium's path; None where it is not installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Chromium:
    """A browser with one page. Leaving the context ends it and removes its profile."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="refabric-chromium-", ignore_cleanup_errors=True)
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        found = program()
        assert found is not None, LACKING
        argv = [
            found, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-extensions", "--disable-background-networking",
            "--force-color-profile=srgb", "--hide-scrollbars", "--remote-debugging-pipe",
            f"--user-data-dir={self._profile.name}", "about:blank",
        ]  # fmt: skip
        redirected = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", redirected, "bash", *argv],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._profile.name},
        )
        os.close(to_read)
        os.close(to_write)
        self._number = itertools.count(1)
        self._data = b""
        self.problems: list[str] = []
        """Exceptions of the page's script and errors in its console, such as refusals by its policy."""

    def __enter__(self) -> Self:
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = str(attached["sessionId"])
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._out)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._profile.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the page's session. Raises AssertionError for an error of the protocol."""
        return self._call(method, self._session, **params)

    def _call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        number = next(self._number)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._next(time.monotonic() + DEADLINE_S)
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._data:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"Chromium did not answer within {DEADLINE_S:g} s"
            read = os.read(self._in, 1 << 20)
            assert read, "Chromium ended"
            self._data += read
        text, _, self._data = self._data.partition(b"\0")
        message = dict(json.loads(text))
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"].get("exception", {}).get("description")))
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(str(params["entry"]["text"]))

    def size(self, width: int, height: int, *, dark: bool = False, media: str = "") -> None:
        """Give the page a size in pixels, a colour scheme, and a medium (`print`)."""
        page = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **page)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def open(self, url: str) -> None:
        """Load a page and wait for it."""
        self.value("window.left = true")
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && !window.left")

    def open_file(self, path: Path) -> None:
        self.open(path.resolve().as_uri())

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page. Raises AssertionError if it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, expression: str, deadline_s: float = 20.0) -> None:
        """Wait until an expression is true. Raises AssertionError at the deadline."""
        until = time.monotonic() + deadline_s
        while not self.value(expression):
            assert time.monotonic() < until, f"not true within {deadline_s:g} s: {expression}"
            time.sleep(0.05)

    def centre(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view and return its centre in the window."""
        quoted = json.dumps(selector)
        x, y = self.value(
            f"(() => {{ const e = document.querySelector({quoted}); e.scrollIntoView({{block: 'center'}});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        return float(x), float(y)

    def move(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def hover(self, selector: str) -> None:
        self.move(*self.centre(selector))

    def click(self, selector: str) -> None:
        """Click the centre of an element with the mouse."""
        x, y = self.centre(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, text: str = "") -> None:
        """Press and release a key by its name (`ArrowRight`, `Escape`, ` `)."""
        written = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **written)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def picture(self, whole: bool = False) -> bytes:
        """Return a PNG of the window, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])
