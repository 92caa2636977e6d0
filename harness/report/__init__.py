"""The HTML report: its sentences, tables and charts. Templates hold its HTML and CSS."""
