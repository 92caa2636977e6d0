"""The ECMP controller of OpenFlow switches, which `--dataplane ovs` runs beside the switches.

    config.py      its configuration, a JSON file
    frames.py      Ethernet frames to 5-tuples; the answer to an ARP request
    messages.py    messages to switches, independent of the version of OpenFlow
    reports.py     messages from switches
    program.py     the controller's logic: reports in, messages out; no sockets, no clock
    of13.py        messages and reports as OpenFlow 1.3 and 1.5 (os-ken's encoder)
    of10.py        messages as OpenFlow 1.0
    channel.py     the connection of one switch
    osken_app.py   the process:  python -m controllers.openflow.osken_app CONFIG.json
    control.py     its control socket (flows, port counters, the path of one flow), and the client
    riplpox.py     the same controller as a component of POX, with RipL-POX's command line
    pox_app.py     that component as a process: POX_DIR=DIR python -m controllers.openflow.pox_app CONFIG.json

**Contract with the process that starts the switches.** `topos/ports.py` numbers a bridge's datapath id and
ports. Bridges have fail mode `secure` (a standalone bridge floods, and these networks have loops) and no
in-band control. They use OpenFlow13 (mode `proactive`: OpenFlow15; POX: OpenFlow10). All ports exist when the
bridge connects, or shortly after. The controller starts first. It prints one JSON object per line on stdout:

    {"event": "ready", "listen": "tcp:127.0.0.1:6653"}        the bridges may connect now
    {"event": "programmed", "switches": 20, "seconds": 0.31}  every switch confirmed its rules

Its log is on stderr. It ends with exit code 3, and the reason as its last line, when an unknown switch
connects, when one connects twice, when ports differ from the switch's links, when a switch refuses a message,
or when switches are missing `connect_s` seconds after `ready`. SIGTERM ends it with code 0. Switches keep
their rules when it ends.

May import `common`, `topos`, `controllers.hashing`, `controllers.rules` and `controllers.scheduler`.
"""
