"""The results folder: what is stored, how it is read back, and points beside their baselines."""
