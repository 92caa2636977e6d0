"""The simulator and the emulation beside arithmetic, theory, another simulator, and each other."""
