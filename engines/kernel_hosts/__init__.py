"""Shared by the engines whose hosts have a Linux kernel: checks of a spec, deadlines, messages, results."""
