"""The private namespaces of a run, the machine's lock, and the pipe to the parent process."""
