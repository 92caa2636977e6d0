"""What engines share whose hosts have a Linux kernel: checks of a spec, deadlines, messages and results."""
