"""A made-up paper with metrics of its own, as one package: metrics, published numbers, figure."""
