"""The paper's claims on cost and robustness: figures, metrics and published statements."""
