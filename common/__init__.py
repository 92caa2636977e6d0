"""What every other package may use: errors, random draws, files, words. Imports nothing of refabric."""
