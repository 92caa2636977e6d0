"""Charts of the validation: laws of TCP, and conservation of packets.

conserved.py  packets received, sent on and dropped by switches
fill.py       goodput of one flow alone by link rate
loss_law.py   goodput by loss: the square-root law
sawtooth.py   the window of a flow that fills a queue
wait.py       delay of pings by the packets before each

May import `model`, `analysis`, `plots.data` and `plots.shared`.
"""
