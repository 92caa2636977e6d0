"""Data planes: the fabric core in real time, or Open vSwitch, behind one protocol (dataplane.py).

background.py        a thread beside a measurement, whose errors are raised
fabric_dataplane.py  the default: the C++ core on the real clock
link_events.py       links that fail, degrade or recover
registry.py          data planes by name
responsive.py        responsive multipath TCP between real hosts
scheduled.py         a central flow scheduler for real hosts
ovs/                 Open vSwitch as a data plane

May import `common`, `fabric`, `topos`, `controllers`, `model`, `engines.emulation` and `engines.scheduling`.
"""
