"""When an entity that lives long continues as new."""

from __future__ import annotations

from temporalio import workflow


def history_is_long(limit: int) -> bool:
    """Whether the history has more events than `limit`, or the server says that it is time."""
    info = workflow.info()
    return info.is_continue_as_new_suggested() or info.get_current_history_length() > limit
