"""Experiments: figures as lists of RunSpecs, the sweep that runs them, the store that keeps them, the CLI."""
