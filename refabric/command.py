"""The command `refabric`: the command line of the harness with all experiments of the registry."""

import gc
import os
import sys

# No command and no worker of it computes with BLAS: its threads would only take time to start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
_STARTS_HOSTS = {"run", "plan", "calibrate", "shell", "doctor", "worker"}
"""Commands that may need the root helper."""


def main() -> None:
    """Become the user for whom root was started, then run the command line."""
    # Imported objects stay. Searching them for garbage takes a sixth of the time of a short command. Later,
    # garbage is looked for more rarely than by default, since flows and links of a plan are none.
    gc.disable()
    _separate()
    from experiments.command import main as command_line  # noqa: PLC0415 -- not as root

    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    command_line()


def _separate() -> None:
    if os.geteuid() != 0:
        return
    from common.errors import RefabricError  # noqa: PLC0415 -- few need them
    from engines.emulation.sandbox import client  # noqa: PLC0415

    try:
        chosen = sys.argv[1:2]
        client.separate(needed=not _STARTS_HOSTS.isdisjoint(chosen), shell=chosen == ["shell"])
    except RefabricError as error:
        print(f"refabric: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
