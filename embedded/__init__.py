"""The whole of Almanac on one machine: Temporal, PostgreSQL, worker and API, owned by one process."""
