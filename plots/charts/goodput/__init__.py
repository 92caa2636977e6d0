"""Charts of goodput, fairness and link utilisation."""
