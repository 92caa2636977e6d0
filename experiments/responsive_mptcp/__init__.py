"""Duan, Responsive Multipath TCP in SDN-based Datacenters, slides of 2015."""
