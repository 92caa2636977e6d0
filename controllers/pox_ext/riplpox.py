"""Makes `riplpox` a component for POX's own command line, if this folder is in PYTHONPATH:

PYTHONPATH=REPOSITORY/controllers/pox_ext REPOSITORY/.venv/bin/python pox.py riplpox --topo=ft,4
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from controllers.openflow.riplpox import launch

__all__ = ["launch"]
