"""Two folders of results side by side."""
