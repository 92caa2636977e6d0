"""The paper's section on Amazon EC2: sequential transfers in a cloud shared with other tenants.

figures.py     figures, and the experiment
metrics.py     MPTCP's mean throughput over TCP's
statements.py  what the paper says

May import `workloads`, `model`, `analysis`, `engines`, `harness` and `experiments.sigcomm11`.
"""
