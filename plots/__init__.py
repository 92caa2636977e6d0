"""Charts of loaded points, written as SVG, PDF and PNG.

May import common, fabric, topos, controllers, workloads, model, analysis and engines (names only), not
harness.

registry.py   name, title and explanation of every chart; how the rest of refabric draws them
data.py       points as charts receive them, published levels, points grouped into panels
charts/       one module per chart, in a folder per subject
shared/       naming.py (file names and labels of settings), sheet.py (layout), style.py (look and recurring
              texts), saving.py (files), replicas.py, studies.py, transports.py (groups of similar charts)
"""
