"""What a machine can carry, how late it is, and how lateness changes a measurement."""
