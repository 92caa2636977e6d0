"""Charts of goodput by one setting: congestion control, load, traffic matrix, network."""
