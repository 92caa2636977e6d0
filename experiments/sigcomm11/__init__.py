"""Improving Datacenter Performance and Robustness with Multipath TCP (SIGCOMM 2011): figures, statements."""
