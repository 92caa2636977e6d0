"""Charts of completion times by load and flow size, after pFabric.

normalised_by_load.py      mean over all flows, by load
normalised_by_size.py      by range of sizes and load
normalised_by_flow.py      Linux hosts against simulated ones, flow by flow
normalised_cdf.py          distribution
normalised_losses.py       drops and retransmissions
normalised_parts.py        one part changed at a time
normalised_sensitivity.py  by buffer and timeout
queue_by_arm.py            queue lengths

May import `analysis`, `model`, `plots.data` and `plots.shared`.
"""
