"""Build the kernel of the engine `linux` from the distribution's packaged source, and remove built ones."""
