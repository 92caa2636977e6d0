"""Make the core's Simulation from a RunSpec, for the simulator and the flow-level engines.

checks.py      the settings of a spec that simulated hosts accept
stack.py       options of the end hosts, and flows, as the core reads them
stalls.py      stalls of a simulated machine, as the core reads them
paths.py       paths of subflows that the routing policy does not choose
setup.py       the Simulation itself
agent.py       the agent of a simulated point
alone.py       the time that each flow of a point would take alone on its path
completion.py  ideal completion time of a sized flow

May import `common`, `fabric`, `topos`, `controllers`, `ccp` and `model`.
"""
