"""The one-machine stack, on real servers."""
