"""Charts of congestion controls in an agent, by its delay, its reporting interval, or the kind of link."""
