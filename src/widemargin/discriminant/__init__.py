"""Linear, quadratic and kernel discriminant analysis."""
