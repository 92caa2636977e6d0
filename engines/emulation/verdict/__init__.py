"""The verdict: whether a run's numbers describe the transport or the machine."""
