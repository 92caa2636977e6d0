"""The fabric: all links and switches of a network in one C++ core, with a virtual or a real clock.

May import `common`.
"""
