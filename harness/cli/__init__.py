"""The command `refabric`: commands, options, progress and tables."""
