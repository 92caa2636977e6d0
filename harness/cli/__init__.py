"""The command refabric."""
