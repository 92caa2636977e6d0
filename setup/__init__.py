"""Set up a machine (`install.sh`), check that it can run emulations, and build the kernel of guests."""
