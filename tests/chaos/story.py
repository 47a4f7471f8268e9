"""What a schedule was told in the course of its life, and what follows from it by the specification alone: which
definition was in force when, and when it fired nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from tests.chaos import cron
from tests.chaos.evidence import Life, Said

BLOCKING = {
    *("executor_unavailable", "pointer_null", "target_not_found", "payload_invalid", "parameters_invalid"),
    *("authority_refused", "start_refused"),
}
"""The reasons of `not_started` that block, by section 6.3."""


@dataclass(frozen=True)
class Version:
    """A definition, from the moment after `since` until `until`, inclusive."""

    revision: int
    since: float
    until: float
    body: dict[str, Any]
    target: str

    @property
    def parents(self) -> list[str]:
        single = self.body.get("after_schedule_id")
        return list(dict.fromkeys([*(self.body.get("after_schedule_ids") or []), *([single] if single else [])]))


@dataclass(frozen=True)
class Silence:
    """It fires nothing of what is due after `since` and until `until`, inclusive."""

    since: float
    until: float
    why: str


@dataclass
class Story:
    life: Life
    versions: list[Version] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)
    inactive: list[tuple[float, float]] = field(default_factory=list)
    cuts: list[float] = field(default_factory=list)
    """When it began to reckon from now: what was due before and nobody had dealt with is dropped."""
    deleted_at: float = inf

    def version(self, revision: int | None) -> Version | None:
        return next((version for version in self.versions if version.revision == revision), None)

    def in_force(self, at: float) -> Version | None:
        return next((version for version in self.versions if version.since < at <= version.until), None)

    def silent(self, at: float) -> Silence | None:
        return next((silence for silence in self.silences if silence.since < at <= silence.until), None)

    def dropped(self, at: float) -> bool:
        """Whether an occurrence was still undealt with when a cut came: no task that could act on it began before."""
        start = bisect_left(self.life.tasks, at)
        acted = next((task for task in self.life.tasks[start:] if not self._inactive(task)), inf)
        return any(at <= cut <= acted for cut in self.cuts)

    def occurrences(self, until: float) -> list[float]:
        """By its patterns, whether or not it was to fire then. Of a schedule without one there are none to tell."""
        return [
            at
            for version in self.versions
            if version.body.get("cron")
            for at in cron.between(
                version.body["cron"],
                version.body["timezone"],
                version.since,
                min(version.until, until, self.deleted_at),
            )
        ]

    def _inactive(self, at: float) -> bool:
        return any(since <= at < until for since, until in self.inactive)


def story(life: Life) -> Story:
    told = _Teller(Story(life))
    for said in life.said:
        told.hear(said)
    return told.finished()


class _Teller:
    """Hears all in order, and closes what is open at the end."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._paused: float | None = None
        self._blocked: float | None = None
        self._inactive: float | None = None
        self._ended: set[str] = set()

    def hear(self, said: Said) -> None:
        if self._story.deleted_at < inf:
            return
        match said.name:
            case "create" if not self._story.versions:
                self._define(1, said)
                if not said.body.get("workspace_active", True):
                    self._inactive = said.at
            case "revise":
                self._revise(said)
            case "pause" if self._paused is None:
                self._paused = said.at
                self._story.cuts.append(said.at)
            case "resume" if self._paused is not None:
                self._silence(self._paused, said.at, "paused")
                self._paused = None
            case "unblock" if self._blocked is not None:
                self._silence(self._blocked, said.at, "blocked")
                self._blocked = None
            case "delete":
                self._story.deleted_at = said.at
                self._story.cuts.append(said.at)
            case "workspace":
                self._workspace(said)
            case "run_report":
                self._reported(said)

    def finished(self) -> Story:
        story = self._story
        for since, why in ((self._paused, "paused"), (self._blocked, "blocked")):
            if since is not None:
                self._silence(since, inf, why)
        if self._inactive is not None:
            story.inactive.append((self._inactive, inf))
        return story

    def _define(self, revision: int, said: Said) -> None:
        versions = self._story.versions
        if versions:
            last = versions[-1]
            versions[-1] = Version(last.revision, last.since, said.at, last.body, last.target)
        versions.append(Version(revision, said.at, inf, said.body["definition"], said.body["target"]))

    def _revise(self, said: Said) -> None:
        last = self._story.versions[-1]
        body = said.body["definition"]
        if body == last.body and said.body["target"] == last.target:
            return
        self._define(last.revision + 1, said)
        if any(body.get(name) != last.body.get(name) for name in ("cron", "timezone")):
            self._story.cuts.append(said.at)

    def _workspace(self, said: Said) -> None:
        if not said.body["active"] and self._inactive is None:
            self._inactive = said.at
        elif said.body["active"] and self._inactive is not None:
            self._story.inactive.append((self._inactive, said.at))
            self._inactive = None

    def _reported(self, said: Said) -> None:
        for run in _ends(said.body["changes"]):
            blocks = run["state"] == "unknown" or (run["state"] == "not_started" and run["reason"] in BLOCKING)
            if blocks and run["run_id"] not in self._ended and self._blocked is None:
                self._blocked = said.at
                self._story.cuts.append(said.at)
            self._ended.add(run["run_id"])

    def _silence(self, since: float, until: float, why: str) -> None:
        self._story.silences.append(Silence(since, until, why))


def _ends(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    still = ("waiting", "queued", "starting", "running")
    return [change["run"] for change in changes if change["run"]["state"] not in still]
