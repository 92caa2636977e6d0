"""Ctrl-C that is never lost."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator

AGAIN_S = 0.02
INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals whose handlers may raise KeyboardInterrupt, the usual one first."""


@contextlib.contextmanager
def never_lost() -> Iterator[None]:
    """Raise a KeyboardInterrupt again that Python dropped because it came in a `__del__` or a callback.

    Python reports such an exception to sys.unraisablehook and goes on, so that a sweep would run to its end.
    """
    before = sys.unraisablehook

    def hook(caught: sys.UnraisableHookArgs) -> None:
        if isinstance(caught.exc_value, KeyboardInterrupt):
            threading.Timer(AGAIN_S, _interrupt).start()
        else:
            before(caught)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _interrupt() -> None:
    """Send the main thread a signal that Python handles. `nohup ... &` ignores SIGINT; then it is another."""
    main = threading.main_thread().ident
    handled = next((number for number in INTERRUPTING if callable(signal.getsignal(number))), None)
    if main is not None and handled is not None:
        signal.pthread_kill(main, handled)
