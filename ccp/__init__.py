"""Congestion control in Python (CCP), for real and for simulated hosts.

Imports `common`.
"""

from ccp.algorithm import Algorithm, Flow, Report

__all__ = ["Algorithm", "Flow", "Report"]
