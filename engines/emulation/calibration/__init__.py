"""The highest link rate that this machine carries: measured once, then stored in a file."""
