"""Scaling of an IMS's functions: when to add an instance, and when to drain one. Pure.

policies.py  decide whether a function is overloaded
scaling.py   the controller of one function
signals.py   what a controller observes of each function

May import no other package.
"""
