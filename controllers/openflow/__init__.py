"""The controller of OpenFlow switches, which `--dataplane ovs` runs beside the switches.

    config.py      the controller's configuration, a JSON file
    frames.py      Ethernet frames to 5-tuples; answers to ARP requests
    messages.py    messages to switches, independent of the version of OpenFlow
    reports.py     messages from switches, independent of the version of OpenFlow
    program.py     the controller's logic: from reports to messages; no sockets, no clock
    of13.py        messages and reports as OpenFlow 1.3 and 1.5 (os-ken's encoder)
    of10.py        messages as OpenFlow 1.0
    channel.py     one switch's connection
    osken_app.py   the process:  python -m controllers.openflow.osken_app CONFIG.json
    control.py     its control socket (flows, port counters, the path of one flow) and a client for it
    riplpox.py     the same controller as a component of POX, with RipL-POX's command line
    pox_app.py     the same as a process:  POX_DIR=DIR python -m controllers.openflow.pox_app CONFIG.json

**Contract with the process that starts the switches.** A bridge's datapath id and ports are numbered by
`topos/ports.py`. Bridges have fail mode `secure` (a standalone bridge floods, and these networks have loops),
in-band control off, and protocol OpenFlow13 (mode `proactive`: OpenFlow15; POX: OpenFlow10). All ports exist
when the bridge connects, or shortly after. The controller starts first and prints one JSON object per line on
stdout:

    {"event": "ready", "listen": "tcp:127.0.0.1:6653"}        it listens; bridges may connect
    {"event": "programmed", "switches": 20, "seconds": 0.31}  every switch confirmed its rules

Its log is on stderr. It exits with code 3 and a last line with the reason if an unknown switch connects, if a
switch connects twice, has other ports than its links or rejects a message, or if switches are missing
`connect_s` seconds after `ready`. SIGTERM ends it with code 0. Switches keep their rules when it ends.
"""
