"""Manual runs belong to no schedule."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.alter_column("runs", "schedule_id", nullable=True)
