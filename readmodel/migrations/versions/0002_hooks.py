"""Webhooks and their secrets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "hooks",
        sa.Column("hook_id", sa.Text, primary_key=True),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("schedule_id", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("former_secret", sa.Text),
        sa.Column("former_until", TIME),
        sa.Column("created_at", TIME, nullable=False, server_default=sa.text("now()")),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("rotated_at", TIME),
    )
    op.create_index("hooks_by_schedule", "hooks", ["workspace", "schedule_id", "hook_id"])
