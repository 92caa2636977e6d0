"""Data planes: the fabric core in real time, or Open vSwitch, behind one protocol; what changes them."""
