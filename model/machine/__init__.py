"""What a machine carries, how late it is, and what that does to a number."""
