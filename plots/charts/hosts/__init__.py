"""Charts of end hosts and machines: CPU, noise, losses, idle subflows."""
