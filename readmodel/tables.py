"""The tables. A mirrored entity is one row: the columns that select, order or guard it, and `record`, the whole
domain value as it arrived. Readers get that value back, so a new field needs no migration.

Ids of schedules and runs are unique over all workspaces. A run's id names its schedule and its occurrence, so
`runs.run_id` and `executions.run_id` also say that no occurrence is recorded or executed twice.
"""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Enum,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
    bindparam,
    false,
    func,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

from domain.run import Origin, RunState
from domain.schedule import Condition
from domain.workspace import Posture


class ExecutionStatus(StrEnum):
    CLAIMED = "claimed"
    """One worker won the right to launch it; until it is ended, its work may be going on."""
    ENDED = "ended"
    VOID = "void"
    """Nobody launched it and nobody can any more."""


def _choice(kind: type[StrEnum]) -> Enum:
    return Enum(kind, native_enum=False, length=16, values_callable=lambda members: [m.value for m in members])


TIME = DateTime(timezone=True)
SORTED_TEXT = Text(collation="C")
"""Ordered by code point, so that keyset pages and prefix searches use the same index on every server."""

metadata = MetaData()

workspaces = Table(
    "workspaces",
    metadata,
    Column("name", Text, primary_key=True),
    Column("active", Boolean, nullable=False, server_default=true()),
    Column("posture", _choice(Posture), nullable=False, server_default=Posture.PRODUCTION.value),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
)

schedules = Table(
    "schedules",
    metadata,
    Column("schedule_id", SORTED_TEXT, primary_key=True),
    Column("workspace", Text, nullable=False),
    Column("name_key", SORTED_TEXT, nullable=False),
    Column("target", Text, nullable=False),
    Column("condition", _choice(Condition), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("record", JSONB, nullable=False),
    Index("schedules_by_target", "workspace", "target"),
)

ALIVE = schedules.c.condition != bindparam("deleted", Condition.DELETED, literal_execute=True)
"""Schedules that are not deleted. Written into the statement as it is, so that the server sees that the index fits."""

Index(
    "schedules_by_name",
    schedules.c.workspace,
    schedules.c.name_key,
    schedules.c.schedule_id,
    postgresql_where=text("condition <> 'deleted'"),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", SORTED_TEXT, primary_key=True),
    Column("workspace", Text, nullable=False),
    Column("schedule_id", Text),
    Column("origin", _choice(Origin), nullable=False),
    Column("state", _choice(RunState), nullable=False),
    Column("recorded_at", TIME, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("record", JSONB, nullable=False),
    Index("runs_by_time", "workspace", "recorded_at", "run_id"),
    Index("runs_by_schedule", "schedule_id", "recorded_at", "run_id"),
    Index("runs_by_state", "workspace", "state", "recorded_at", "run_id"),
)

IS_REVIEW = text("(record -> 'prepared') ? 'evidence_run_id'")
"""Runs that review another one, which they name in what they froze. As text, so that the server sees that the index
fits."""

Index("runs_of_reviews", runs.c.workspace, runs.c.recorded_at, postgresql_where=IS_REVIEW)

trail = Table(
    "trail",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("record", JSONB, nullable=False),
)

executions = Table(
    "executions",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("run_id", Text, nullable=False, unique=True),
    Column("worker", Text),
    Column("status", _choice(ExecutionStatus), nullable=False),
    Column("claimed_at", TIME, nullable=False, server_default=func.now()),
    Column("ended_at", TIME),
    Column("outcome", _choice(RunState)),
    Column("reason", Text),
    Column("message", Text),
)

schedule_names = Table(
    "schedule_names",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("name_key", SORTED_TEXT, primary_key=True),
    Column("schedule_id", Text, nullable=False),
    Column("reserved_at", TIME, nullable=False, server_default=func.now()),
    Index("schedule_names_by_time", "workspace", "reserved_at"),
)

pipelines = Table(
    "pipelines",
    metadata,
    Column("pipeline_id", Uuid(as_uuid=False), primary_key=True, server_default=func.gen_random_uuid()),
    Column("workspace", Text, ForeignKey("workspaces.name"), nullable=False),
    Column("name", SORTED_TEXT, nullable=False),
    Column("current_version", Integer),
    Column("current_is_draft", Boolean, nullable=False, server_default=false()),
    Column("draft", JSONB, nullable=False),
    Column("draft_sha256", Text, nullable=False),
    Column("changed_at", TIME, nullable=False, server_default=func.now()),
    Column("changed_by", Text, nullable=False),
    Column("discarded_at", TIME),
    Index("pipelines_by_name", "workspace", "name", unique=True, postgresql_where=text("discarded_at IS NULL")),
)

pipeline_versions = Table(
    "pipeline_versions",
    metadata,
    Column("pipeline_id", Uuid(as_uuid=False), ForeignKey("pipelines.pipeline_id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("body_sha256", Text, nullable=False),
    Column("definition", JSONB, nullable=False),
    Column("released_at", TIME, nullable=False, server_default=func.now()),
    Column("released_by", Text, nullable=False),
)

results = Table(
    "results",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("workspace", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("expires_at", TIME, nullable=False),
    Index("results_by_expiry", "expires_at"),
)

hooks = Table(
    "hooks",
    metadata,
    Column("hook_id", Text, primary_key=True),
    Column("workspace", Text, nullable=False),
    Column("schedule_id", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("former_secret", Text),
    Column("former_until", TIME),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("created_by", Text, nullable=False),
    Column("rotated_at", TIME),
    Index("hooks_by_schedule", "workspace", "schedule_id", "hook_id"),
)

audit = Table(
    "audit",
    metadata,
    Column("number", BigInteger, Identity(always=True), primary_key=True),
    Column("at", TIME, nullable=False, server_default=func.now()),
    Column("by", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("subjects", JSONB, nullable=False),
    Column("revision", BigInteger),
    Column("counts", JSONB, nullable=False),
    Index("audit_by_workspace", "workspace", "number"),
)
