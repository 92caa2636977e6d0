"""Agents of portus, the CCP authors' library, on refabric's datapath (docs/ccp.md)."""

from ccp.portus.algorithm import PortusAlgorithm

__all__ = ["PortusAlgorithm"]
