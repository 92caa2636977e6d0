"""Studies of the emulation itself: machine noise, and subflows without data to send.

noise.py         the effect of CPU stalls on results
subflow_idle.py  subflows that have nothing to send

May import `model`, `engines` and `harness`.
"""
