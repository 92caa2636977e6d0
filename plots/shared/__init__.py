"""What charts share: layout, look, files, names of settings, and groups of points. Imports no chart."""
