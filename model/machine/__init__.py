"""What a machine carries, how late it delivers, and what that does to a number."""
