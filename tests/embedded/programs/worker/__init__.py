"""A worker."""
