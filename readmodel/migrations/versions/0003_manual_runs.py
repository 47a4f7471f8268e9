"""Manual runs belong to no schedule; runs that review another are found by an index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.alter_column("runs", "schedule_id", nullable=True)
    reviews = sa.text("(record -> 'prepared') ? 'evidence_run_id'")
    op.create_index("runs_of_reviews", "runs", ["workspace", "recorded_at"], postgresql_where=reviews)
