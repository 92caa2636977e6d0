"""Duan: scaling the functions of an IMS under overload (slides, University of Hong Kong, 2015)."""
