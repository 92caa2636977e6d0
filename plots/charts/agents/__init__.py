"""Charts of congestion controls by an agent."""
