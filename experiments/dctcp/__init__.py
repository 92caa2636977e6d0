"""DCTCP (SIGCOMM 2010): the queue that TCP needs, and short flows."""
