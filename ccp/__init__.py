"""Congestion control plane: congestion controls in Python, for real and for simulated hosts (docs/ccp.md)."""

from ccp.algorithm import Algorithm, Flow, Report

__all__ = ["Algorithm", "Flow", "Report"]
