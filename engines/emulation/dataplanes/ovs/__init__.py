"""Open vSwitch as a data plane: one bridge per switch, links shaped by the kernel's HTB, OpenFlow rules."""
