"""Published numbers, how they are measured on stored points, and verdicts on them."""
