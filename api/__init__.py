"""REST: checks a request, sends it to the workflow that owns the thing, and reads from the mirror."""
