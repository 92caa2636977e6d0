"""Decide whether the machine disturbed a run, and what caused it.

blame.py              the cause of lateness: this run, other processes, or the hypervisor
company.py            CPU time of processes outside the run, in user mode
idle_probe.py         the machine's noise, measured while it waits
purposeful_stalls.py  injected stalls while real hosts run
verdict.py            the verdict on a run

May import `common`, `fabric`, `model`, `analysis` and `engines.emulation`.
"""
