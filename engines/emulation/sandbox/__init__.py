"""The private namespaces of a run, and the root helper that makes them. May import `common` and
`engines.emulation.kernel.namespaces`."""
