"""What a run needs of GPUs and hours, on paper: formulas of the transformer, and assumptions that are all named."""
