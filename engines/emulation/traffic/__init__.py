"""Traffic generators: iperf3 processes, or one process for the flows of all hosts."""
