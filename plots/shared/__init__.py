"""What charts share: the sheet, the style, saving, and grouping of points."""
