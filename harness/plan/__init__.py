"""From options to the points of a sweep, their link rates and their measured windows."""
