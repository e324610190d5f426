"""Label trees: classification with very many labels."""
