"""The command `refabric`: the command line of the harness with all experiments of the registry."""

from experiments.registry import CATALOGUE
from harness.cli.commands import command_line

main = command_line(CATALOGUE)

if __name__ == "__main__":
    main()
