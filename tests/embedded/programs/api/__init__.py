"""An API."""
