"""What a machine carries, how late it delivers, and what that does to a number.

capacity.py    a point's load and a machine's capacity, in packet-hops per second
effects.py     how late frames and a paused clock change each metric
frame_cost.py  CPU cost of a frame, and the link rates that noise allows
idle_noise.py  how late an idle machine wakes a thread

May import `fabric`, `topos`, `controllers`, `workloads`, `model.noise`, `model.reasons` and `model.spec`.
"""
