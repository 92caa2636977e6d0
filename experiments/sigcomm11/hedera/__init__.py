"""The paper's comparison with central flow scheduling (Hedera): figures, metrics, published statements."""
