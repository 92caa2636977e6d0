"""The CS244 2017 post by Bhat and Ren, which reproduced pFabric (SIGCOMM 2013) on Mininet."""
