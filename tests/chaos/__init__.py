"""Almanac under random kills, and a checker of what it then says that shares none of its decisions."""
