"""Whether the numbers of a run are about the transport or about the machine."""
