"""Agents of portus, the CCP authors' library, on refabric's datapath (docs/ccp.md).

algorithm.py  an unmodified agent of portus as an algorithm
messages.py   messages between a datapath and an agent of portus
program.py    programs that agents of portus install, as programs of our datapath

May import `common`, `ccp.algorithm`, `ccp.reports` and `ccp.language`.
"""

from ccp.portus.algorithm import PortusAlgorithm

__all__ = ["PortusAlgorithm"]
