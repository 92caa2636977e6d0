"""The private namespaces that a run lives in, the lock of the machine, and the pipe to the outside."""
