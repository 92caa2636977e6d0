"""See a point at work: the feed of a running point, and one page for running and for finished points."""
