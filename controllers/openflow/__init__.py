"""The ECMP controller of OpenFlow switches: what `--dataplane ovs` runs beside the switches.

    config.py      what the run tells it: a JSON file, and what it answers
    frames.py      Ethernet frames to 5-tuples; the answer to an ARP request
    messages.py    what a controller tells switches, whatever the version of OpenFlow
    reports.py     what switches tell it
    program.py     the controller: from what switches report to what they are told; no sockets, no clock
    of13.py        messages and reports as OpenFlow 1.3 and 1.5 (os-ken's encoder)
    of10.py        messages as OpenFlow 1.0
    channel.py     one switch's connection
    osken_app.py   the process:  python -m controllers.openflow.osken_app CONFIG.json
    control.py     its control socket: flows, port counters, the path of one flow; and the client of it
    riplpox.py     the same controller as a component of POX, with RipL-POX's command line
    pox_app.py     that as a process:  POX_DIR=DIR python -m controllers.openflow.pox_app CONFIG.json

**Contract with whoever starts the switches.** A bridge's datapath id and ports are numbered by
`topos/ports.py`. Bridges have fail mode `secure` (a standalone bridge floods, and these networks have loops),
in-band control off, and speak OpenFlow13 (mode `proactive`: OpenFlow15; POX: OpenFlow10). All ports are there
when the bridge connects, or shortly after. The process is started first; it prints one JSON object a line on
stdout:

    {"event": "ready", "listen": "tcp:127.0.0.1:6653"}        it listens; connect the bridges now
    {"event": "programmed", "switches": 20, "seconds": 0.31}  every switch confirmed its rules

Its log is on stderr. It ends by itself, with exit code 3 and a last line that says why, when a switch it does
not know connects, one connects twice or has other ports than its links, refuses a message, or not all are
there `connect_s` seconds after `ready`. SIGTERM ends it with code 0. Switches keep their rules when it ends.
"""
