"""Responsive multipath TCP: a central controller adds subflows to connections whose demand is not met. Pure.

Source: Duan, slides of 2015 (University of Hong Kong); docs/responsive-mptcp.md says what they leave open.
"""
