"""Charts of queues, windows and round-trip times.

bottleneck.py     the queue where the flows meet
cwnd.py           congestion windows over time
queue_cdf.py      distribution of queue lengths
queue_lengths.py  queue lengths as a matrix, for these charts
queues.py         queue length of every port over time
rtt.py            round-trip time of every flow

May import `model`, `analysis`, `engines`, `plots.data` and `plots.shared`.
"""
