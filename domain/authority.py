"""Who schedules fire as: one identity of the system's own, whoever wrote the schedule or asked for the run.

It has no credential, so nobody can act as it; a request that says it comes from it is refused. What else is allowed to
whom is not decided here.
"""

from __future__ import annotations

from enum import StrEnum

from domain.errors import Forbidden
from domain.values import Value


class Permission(StrEnum):
    PIPELINE_READ = "pipeline.read"
    PIPELINE_EXECUTE = "pipeline.execute"
    EXECUTION_READ = "execution.read"


class Identity(Value):
    name: str
    permissions: frozenset[Permission]
    """In every workspace."""

    def lacks(self, *asked: Permission) -> Permission | None:
        """The first permission of those asked for that it does not have."""
        return next((permission for permission in asked if permission not in self.permissions), None)


SYSTEM = Identity(name="almanac-scheduler", permissions=frozenset(Permission))


def check_not_system(name: str) -> None:
    """Raises Forbidden `auth.system_identity` for a request that says it comes from the system."""
    if name.strip().lower() == SYSTEM.name:
        raise Forbidden(
            "auth.system_identity", f"{SYSTEM.name} is who schedules fire as. Nobody else can act in its name."
        )
