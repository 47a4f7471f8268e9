"""The least that the stack takes for a worker and for an API."""
