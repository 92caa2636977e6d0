"""The highest link rate that this machine carries: measured once, then stored in a file.

calibrate.py         the highest link rate, by trials
calibration_file.py  the file of calibrated link rates
here.py              the capacity of this machine, from calibrations

May import `common`, `topos`, `model`, `engines.emulation`, `engines.engine` and `engines.provenance`.
"""
