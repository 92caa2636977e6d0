"""Set up a machine (install.sh), and check that it can run emulations (doctor.py).

May import `engines` and what is left of it.
"""
