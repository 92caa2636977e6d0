"""Charts of multipath TCP whose subflows a controller adds on demand."""
