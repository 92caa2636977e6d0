"""Traffic of a point: iperf3 processes, or one process for all hosts."""
