"""What every other package may use: errors, files, text, processes, privileges. Imports no other package."""
