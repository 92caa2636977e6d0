"""Installation of refabric, and tests that a machine is fit to run it."""
