"""Published statements beside measured values: verdicts, claims of a paper, and settings of a figure."""
