"""Simulator and emulation compared with arithmetic, theory, another simulator, and each other."""
