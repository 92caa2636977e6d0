"""The HTML report, its sections and its charts."""
