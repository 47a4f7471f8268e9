"""The first tables. Written out and not taken from `readmodel.tables`, which goes on changing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

KEY = sa.Text(collation="C")
CHOICE = sa.String(16)
TIME = sa.DateTime(timezone=True)
NOW = sa.text("now()")


def upgrade() -> None:
    _workspaces()
    _mirror()
    _executions_and_names()
    _pipelines()
    _audit()


def _workspaces() -> None:
    op.create_table(
        "workspaces",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("active", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("created_at", TIME, nullable=False, server_default=NOW),
    )


def _mirror() -> None:
    op.create_table(
        "schedules",
        sa.Column("schedule_id", KEY, primary_key=True),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("name_key", KEY, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("condition", CHOICE, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("record", JSONB, nullable=False),
    )
    alive = sa.text("condition <> 'deleted'")
    op.create_index("schedules_by_name", "schedules", ["workspace", "name_key", "schedule_id"], postgresql_where=alive)
    op.create_index("schedules_by_target", "schedules", ["workspace", "target"])
    op.create_table(
        "runs",
        sa.Column("run_id", KEY, primary_key=True),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("schedule_id", sa.Text, nullable=False),
        sa.Column("origin", CHOICE, nullable=False),
        sa.Column("state", CHOICE, nullable=False),
        sa.Column("recorded_at", TIME, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("record", JSONB, nullable=False),
    )
    op.create_index("runs_by_time", "runs", ["workspace", "recorded_at", "run_id"])
    op.create_index("runs_by_schedule", "runs", ["schedule_id", "recorded_at", "run_id"])
    op.create_index("runs_by_state", "runs", ["workspace", "state", "recorded_at", "run_id"])
    op.create_table(
        "trail",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("record", JSONB, nullable=False),
    )


def _executions_and_names() -> None:
    op.create_table(
        "executions",
        sa.Column("execution_id", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, nullable=False, unique=True),
        sa.Column("worker", sa.Text),
        sa.Column("status", CHOICE, nullable=False),
        sa.Column("claimed_at", TIME, nullable=False, server_default=NOW),
        sa.Column("ended_at", TIME),
        sa.Column("outcome", CHOICE),
        sa.Column("reason", sa.Text),
        sa.Column("message", sa.Text),
    )
    op.create_table(
        "schedule_names",
        sa.Column("workspace", sa.Text, primary_key=True),
        sa.Column("name_key", KEY, primary_key=True),
        sa.Column("schedule_id", sa.Text, nullable=False),
        sa.Column("reserved_at", TIME, nullable=False, server_default=NOW),
    )
    op.create_index("schedule_names_by_time", "schedule_names", ["workspace", "reserved_at"])


def _pipelines() -> None:
    op.create_table(
        "pipelines",
        sa.Column("pipeline_id", sa.Uuid, primary_key=True, server_default=sa.text("gen_random_uuid()")),
        sa.Column("workspace", sa.Text, sa.ForeignKey("workspaces.name"), nullable=False),
        sa.Column("name", KEY, nullable=False),
        sa.Column("current_version", sa.Integer),
        sa.Column("draft", JSONB, nullable=False),
        sa.Column("draft_sha256", sa.Text, nullable=False),
        sa.Column("changed_at", TIME, nullable=False, server_default=NOW),
        sa.Column("changed_by", sa.Text, nullable=False),
    )
    op.create_index("pipelines_by_name", "pipelines", ["workspace", "name"], unique=True)
    op.create_table(
        "pipeline_versions",
        sa.Column("pipeline_id", sa.Uuid, sa.ForeignKey("pipelines.pipeline_id"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("body_sha256", sa.Text, nullable=False),
        sa.Column("definition", JSONB, nullable=False),
        sa.Column("released_at", TIME, nullable=False, server_default=NOW),
        sa.Column("released_by", sa.Text, nullable=False),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("number", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("at", TIME, nullable=False, server_default=NOW),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("subjects", JSONB, nullable=False),
        sa.Column("revision", sa.BigInteger),
        sa.Column("counts", JSONB, nullable=False),
    )
    op.create_index("audit_by_workspace", "audit", ["workspace", "number"])
