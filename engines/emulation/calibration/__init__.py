"""The highest link rate that this machine carries, measured and remembered."""
