"""The command `refabric`: the command line of the harness with all experiments of the registry."""

from experiments.command import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
