"""Helpers for every other package: errors, random draws, files, grammar. Imports nothing of refabric."""
