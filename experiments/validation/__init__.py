"""The simulator and emulation against arithmetic, theory, another simulator and each other."""
