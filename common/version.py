"""The version of refabric. It is written here alone; pyproject.toml reads this file."""

VERSION = "0.2.0"
