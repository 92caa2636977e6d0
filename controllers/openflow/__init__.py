"""The ECMP controller of OpenFlow switches, which `--dataplane ovs` runs beside the switches.

The controller's logic (`program.py`) has no sockets and no clock; `python -m controllers.openflow.osken_app
CONFIG.json` and `pox_app` are its processes.

**Contract with the process that starts the switches.** `topos/topology.py` numbers a bridge's datapath id and
ports. Bridges have fail mode `secure` (a standalone bridge floods, and these networks have loops) and no
in-band control. They use OpenFlow13 (mode `proactive`: OpenFlow15; POX: OpenFlow10). All ports exist when the
bridge connects, or shortly after. The controller starts first. It prints one JSON object per line on stdout:

    {"event": "ready", "listen": "tcp:127.0.0.1:6653"}        the bridges may connect now
    {"event": "programmed", "switches": 20, "seconds": 0.31}  every switch confirmed its rules

Its log is on stderr. It ends with exit code 3, and the reason as its last line, when an unknown switch
connects, when one connects twice, when ports differ from the switch's links, when a switch refuses a message,
or when switches are missing `connect_s` seconds after `ready`. SIGTERM ends it with code 0. Switches keep
their rules when it ends.
"""
