"""Charts of goodput, fairness and the use of links."""
