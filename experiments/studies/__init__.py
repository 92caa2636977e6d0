"""Studies of the tool itself: machine noise, and subflows that run dry."""
