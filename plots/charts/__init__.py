"""One file per chart, in a folder per subject."""
