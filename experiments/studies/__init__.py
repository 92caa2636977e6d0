"""Studies of the emulation itself: machine noise, and subflows without data to send."""
