"""Steady-state rates of every flow without a packet: a network of capacities, and who shares them how."""
