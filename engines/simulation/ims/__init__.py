"""The simulated IMS (docs/experiments/ims.md)."""
