"""The results folder: what is stored, and how it is read back and summarised."""
