"""Plan a sweep from its options: points, link rates, measured windows."""
