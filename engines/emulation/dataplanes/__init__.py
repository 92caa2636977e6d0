"""Data planes, which carry frames between the hosts: the fabric core in real time, or Open vSwitch."""
