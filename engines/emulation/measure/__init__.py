"""What is read while a point runs, and the rows and tables that come of it."""
