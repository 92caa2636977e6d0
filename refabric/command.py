"""The command `refabric`: the command line of the harness with all experiments of the registry."""

import gc
import os

# No command and no worker of it computes with BLAS: its threads would only take time to start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Imported objects stay. Searching them for garbage takes a sixth of the time of a short command; afterwards
# garbage is looked for more rarely than by default, since flows and links of a plan are many and no garbage.
gc.disable()
from experiments.command import main  # noqa: E402

gc.freeze()
gc.set_threshold(50_000, 20, 20)
gc.enable()

__all__ = ["main"]

if __name__ == "__main__":
    main()
