"""Workloads: who sends to whom, how much and when. Pure.

matrices.py   traffic matrices by name
sizes.py      distributions of flow sizes

May import `topos` and what is left of it.
"""
