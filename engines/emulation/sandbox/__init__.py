"""The sandbox of a run: private namespaces, the machine's lock, and the pipe to the outer process."""
