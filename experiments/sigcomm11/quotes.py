"""The words of SIGCOMM 2011 as our notes have them, verbatim in quotation marks (docs/published.md)."""

from __future__ import annotations

TCP_MEAN = "mean goodput, TCP with ECMP: below 50 % of optimal"
MPTCP_MEAN = 'mean goodput, MPTCP 8 subflows: levels off about 95 %; "approaches 100 %"'
MPTCP_RANK = "rank, MPTCP 8: all flows >= 70 %, more than half >= 90 %"
TCP_RANK = "rank, TCP: some flows about 10 %, very few near 100 %"
SUBFLOWS = "subflows needed for 90 % utilisation, any size up to k=32 (8192 hosts): at most 8"
VL2 = "MPTCP improves fairness"
BCUBE = "MPTCP improves throughput and fairness"
BY_MATRIX = "gain depends on the traffic matrix: none when host links or nothing is the bottleneck"
TWO_NICS = "significant gain while the core is not overloaded; none for matrices that fill the core"
SHORT_FLOWS = "mean completion, core utilisation: long flows TCP 79 ms, 25 %; long flows MPTCP 97 ms, 65 %"
CLOUD = "MPTCP three times TCP where there is path diversity"
