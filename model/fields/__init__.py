"""What a spec says of each of its fields beside the value: its range, and its words.

limits.py  the range of every number in a RunSpec, and the check of a spec
ranges.py  ranges of numbers, and how a field states its own
words.py   what labels, titles and charts call a setting

May import `common`, `topos`, `workloads` and `model`.
"""
