"""What the simulated and the real IMS share: the run of a load, the controller, and the result."""
