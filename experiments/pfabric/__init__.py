"""Alizadeh et al.: pFabric, SIGCOMM 2013, after Deconstructing Datacenter Packet Transport, HotNets 2012.

points.py      networks, loads and points
metrics.py     completion times of one arm over those of another
statements.py  what the papers say, as numbers
figures.py     the figures

May import `analysis`, `model`, `engines` and `harness`.
"""
