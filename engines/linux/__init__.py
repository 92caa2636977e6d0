"""Real Linux in virtual time: one User-Mode Linux guest per point."""
