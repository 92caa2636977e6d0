"""Congestion controls that come with refabric, one per file; `--cc ccp:NAME` runs one.

aggregate.py  one Reno window for all flows between two hosts
bbr.py        BBR version 1
copa.py       Copa in its default mode
cubic.py      CUBIC
reno.py       Reno
shared.py     a program and a constant that several algorithms use
vegas.py      Vegas

May import `ccp`.
"""
