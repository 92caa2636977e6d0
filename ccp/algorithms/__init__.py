"""Congestion controls that come with refabric, one per file; `--cc ccp:NAME` runs one."""
