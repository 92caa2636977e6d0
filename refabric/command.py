"""The command `refabric`: the command line of the harness with all experiments of the registry."""

import gc

# Imported objects stay. Searching them for garbage takes a sixth of the time of a short command.
gc.disable()
from experiments.command import main  # noqa: E402

gc.freeze()
gc.enable()

__all__ = ["main"]

if __name__ == "__main__":
    main()
