"""What is said of a run whose worker has gone silent, and only from what is proven.

| somebody claimed it | what is known of its execution | the run |
|---|---|---|
| no | - | nothing ran: it may be admitted again |
| no | it was seen running | `unknown` / `execution_missing` |
| yes | its end was written down | ends so |
| yes | it is detached, and no end was written down | goes on: what comes after can be done by anybody |
| yes | an end was written down that can't be read | `unknown` / `outcome_unreadable` |
| yes | it had begun | `unknown` / `instance_lost` |
| yes | nothing | `unknown` / `start_unconfirmed` |
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain import frozen
from domain.lane import fence
from domain.run import Advanced, Run, RunState, advance, hand_over, note
from domain.values import Value

TAKEN_OVER = "launch_taken_over"
"""What the trail says of a detached execution whose worker was lost before it had been launched for certain."""


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


def taken_over(attempt: Run, evidence: Evidence, cause: str, now: datetime) -> Advanced | None:
    """A detached execution whose worker has gone silent. Its launch can be asked for again and its end seen by anybody,
    so the run goes on; None where that is not so."""
    run = evidence.claimed
    if run is None or evidence.ending is not None or not frozen.is_detached(run):
        return None
    message = "Its worker was lost after the claim; another one sees to its launch and to its end."
    run = run.model_copy(update={"seq": max(run.seq, attempt.seq)})
    return note(hand_over(run), TAKEN_OVER, now, message, data={"cause": cause})


def unconfirmed(ending: Ending) -> Ending:
    """What is said of a detached execution that nobody is certain to have launched: one that can't be found may begin
    later all the same."""
    if ending.reason != "execution_missing":
        return ending
    message = "It could not be launched in time, and nobody can say whether it begins all the same."
    return Ending(state=RunState.UNKNOWN, reason="start_unconfirmed", message=message)


def doubt(run: Run, heartbeat_seconds: int) -> timedelta | None:
    """For how long the work of a run whose end nobody knows may still be going on, so that its lane is held; None:
    until the truth or a person tells. What a lost worker had in its slot is over when the fence is."""
    if run.reason == "start_failed" or (frozen.is_detached(run) and run.reason == "execution_missing"):
        return timedelta(0)
    return None if frozen.outlives_worker(run) else fence(heartbeat_seconds)


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
