"""Studies of refabric itself: machine noise, and subflows that run out of data."""
