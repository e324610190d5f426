"""Semi-supervised classification with constraints on precision and recall."""
