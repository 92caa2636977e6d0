"""The CS244 2013 post of Wilson and O'Connor on SIGCOMM 2011, and two figures beyond it."""
