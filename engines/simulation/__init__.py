"""The packet-level simulator: simulated end hosts on the fabric core, in virtual time."""
