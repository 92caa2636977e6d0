"""Congestion control plane: congestion controls in Python, for real and for simulated hosts (docs/ccp.md).

agent.py      an agent: hands events to an algorithm and returns its commands
algorithm.py  the interface of an algorithm
loading.py    make an algorithm from its name, or from a user's file
names.py      names of algorithms and of users' files
reports.py    reports of a datapath's program
algorithms/   congestion controls that come with refabric
language/     the language of datapath programs
portus/       agents of portus, the CCP authors' library

May import `common`.
"""

from ccp.algorithm import Algorithm, Flow
from ccp.reports import Report

__all__ = ["Algorithm", "Flow", "Report"]
