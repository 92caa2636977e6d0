"""What every other package may use: errors, random draws, files, grammar.

Imports no other package of refabric.
"""
