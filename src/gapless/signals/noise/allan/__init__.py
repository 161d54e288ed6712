"""Allan variances, how they scatter, and the kinds of noise that explain them."""
