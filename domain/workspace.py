"""A workspace: the isolation unit. Everything else belongs to exactly one."""

from __future__ import annotations

from enum import StrEnum

from domain.values import Value


class Posture(StrEnum):
    PRODUCTION = "production"
    """Only released versions run."""
    DEVELOPMENT = "development"
    """A pipeline's current pointer may be moved to its draft."""


class Workspace(Value):
    name: str
    active: bool
    """An inactive workspace fires nothing."""
    posture: Posture
