"""Narayan et al., Restructuring Endpoint Congestion Control, SIGCOMM 2018: an agent sets the windows."""
