"""The current pointer may be at a draft, pipelines are discarded, and runs have small results for a while."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("workspaces", sa.Column("posture", sa.String(16), nullable=False, server_default="production"))
    op.add_column("pipelines", sa.Column("current_is_draft", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("pipelines", sa.Column("discarded_at", TIME))
    op.drop_index("pipelines_by_name", "pipelines")
    kept = sa.text("discarded_at IS NULL")
    op.create_index("pipelines_by_name", "pipelines", ["workspace", "name"], unique=True, postgresql_where=kept)
    op.create_table(
        "results",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
    )
    op.create_index("results_by_expiry", "results", ["expires_at"])
