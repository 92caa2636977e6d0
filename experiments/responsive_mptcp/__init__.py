"""Duan: responsive multipath TCP (slides, University of Hong Kong, 2015)."""
