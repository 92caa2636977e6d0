"""Analysis of results: pure functions of rows and samples. Imports model, topos and workloads only."""
