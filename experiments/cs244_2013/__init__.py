"""The CS244 2013 post by Wilson and O'Connor, which reproduced figures of SIGCOMM 2011 on Mininet.

Its published numbers are in `experiments.sigcomm11`, next to those of the paper that it reproduced.
"""
