"""What a page shows of a point: its network as a drawing, and its state step by step. Pure."""
