"""The Python interface: run and load experiments as the command line does, and read results as arrays."""
