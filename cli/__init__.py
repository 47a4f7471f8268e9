"""The terminal: a client of REST, and the entry points of every part."""
