"""What is said of a run whose worker has gone silent, and only from what is proven.

| somebody claimed it | what is known of its execution | the run |
|---|---|---|
| no | - | nothing ran: it may be admitted again |
| no | it was seen running | `unknown` / `execution_missing` |
| yes | its end was written down | ends so |
| yes | an end was written down that can't be read | `unknown` / `outcome_unreadable` |
| yes | it had begun | `unknown` / `instance_lost` |
| yes | nothing | `unknown` / `start_unconfirmed` |
"""

from __future__ import annotations

from datetime import datetime

from domain.run import Advanced, Run, RunState, advance, hand_over
from domain.values import Value

OVER = frozenset({"start_failed"})
"""The unknown ends that the worker itself has told, after its execution was over."""


class Ending(Value):
    """How an execution ended, as the one who ran it wrote it down."""

    state: RunState
    reason: str | None = None
    message: str | None = None


class Evidence(Value):
    """What could be found out about a run's execution."""

    claimed: Run | None
    """The run as it was claimed; None when nobody has claimed it."""
    began: bool = False
    """Whether anything shows that the claim led to an execution."""
    ending: Ending | None = None
    unreadable: str | None = None
    """Why an end that was written down can't be told."""


def conclude(attempt: Run, evidence: Evidence, *, announced: bool, cause: str, now: datetime) -> Advanced | None:
    """How the run ends, and None when nothing ran. `attempt` is the run as its workflow knows it, `announced`
    whether it was seen running, `cause` what became of the worker, in words."""
    claimed = evidence.claimed
    if claimed is None:
        if not announced:
            return None
        return _unknown(attempt, "execution_missing", "It ran, and there is no record of its execution.", cause, now)
    run = claimed.model_copy(update={"seq": max(claimed.seq, attempt.seq)})
    if evidence.ending is not None:
        return _ended(run, attempt, evidence.ending, now)
    if evidence.unreadable is not None:
        message = f"Its end was written down and can't be read: {evidence.unreadable}."
        return _unknown(run, "outcome_unreadable", message, cause, now)
    if evidence.began or announced:
        return _unknown(run, "instance_lost", "Its worker was lost while it ran.", cause, now)
    message = "Its worker was lost before it had confirmed the start."
    return _unknown(run, "start_unconfirmed", message, cause, now)


def late_truth(run: Run, ending: Ending, now: datetime) -> Advanced:
    """An unknown run whose execution has told its end after all."""
    return advance(run, ending.state, now, reason=ending.reason, message=ending.message)


def _ended(run: Run, attempt: Run, ending: Ending, now: datetime) -> Advanced:
    if ending.state is RunState.NOT_STARTED:
        run = attempt.model_copy(update={"seq": run.seq})
    return advance(hand_over(run), ending.state, now, kind="finished", reason=ending.reason, message=ending.message)


def _unknown(run: Run, reason: str, message: str, cause: str, now: datetime) -> Advanced:
    return advance(
        hand_over(run), RunState.UNKNOWN, now, kind="finished", reason=reason, message=message, data={"cause": cause}
    )
