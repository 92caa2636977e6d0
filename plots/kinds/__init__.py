"""The kinds of plots that charts are made of, one module each."""
