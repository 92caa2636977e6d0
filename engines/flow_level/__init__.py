"""Flow-level models: steady-state rates of every flow from link capacities, without packets."""
