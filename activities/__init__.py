"""What workflows have done to the outside: one class per outside thing, and no policy."""
