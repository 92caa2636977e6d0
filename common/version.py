"""The version of refabric. It is written only here; pyproject.toml reads this file."""

VERSION = "0.2.0"
