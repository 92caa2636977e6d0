"""A real IMS: Kamailio, SIPp and redis in the run's own namespaces (docs/experiments/ims.md)."""
