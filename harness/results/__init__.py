"""The results folder: what is stored, and what is read back."""
