"""Calibration: measuring and storing the highest link rate that this machine sustains."""
