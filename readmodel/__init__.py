"""What readers see: PostgreSQL mirrors what the workflows decided, and is itself the authority for pipelines,
names, workspaces and the claims of executions."""
