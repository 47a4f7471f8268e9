"""Run by Alembic for each command: the steps go through the connection of the caller, in its transaction."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
