"""Charts of SIP calls through an IMS."""
