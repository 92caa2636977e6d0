"""What charts share: the sheet, the look, saving, and how points are grouped."""
