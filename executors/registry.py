"""The executors by name: the built-in ones and what other distributions offer.

A distribution adds an executor by an entry point of the group `almanac.executors`. The entry point's name is
the executor's; it loads something that, called without arguments, answers an `executors.protocol.Executor`.
One that can't be loaded is absent and says why when it is asked for; the others work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

from domain.errors import Invalid
from executors.protocol import DetachedExecutor, Executor, Refused, SlotExecutor

GROUP = "almanac.executors"


class Registry:
    """Executors by name, and for those that are offered but unusable the reason."""

    def __init__(self, executors: Mapping[str, Executor], unusable: Mapping[str, str]) -> None:
        self._executors = executors
        self.unusable = unusable

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._executors))

    def for_save(self, name: str) -> Executor:
        """Raises Invalid, with the names there are, when a schedule names another."""
        if name in self._executors:
            return self._executors[name]
        raise Invalid(
            "schedule.validation.executor_unknown",
            self._absence(name),
            field="executor",
            hint=f"Known executors: {', '.join(self.names)}.",
        )

    def for_run(self, name: str) -> Executor:
        """Raises Refused `executor_unavailable` when this instance does not have it."""
        if name in self._executors:
            return self._executors[name]
        raise Refused("executor_unavailable", self._absence(name))

    def _absence(self, name: str) -> str:
        if name in self.unusable:
            return f"The executor '{name}' can't be used here: {self.unusable[name]}."
        return f"There is no executor '{name}'."


def installed(built_in: Iterable[Executor]) -> Registry:
    """The built-in executors, and those that the installed distributions offer under other names."""
    executors = {executor.name: executor for executor in built_in}
    unusable: dict[str, str] = {}
    for offer in entry_points(group=GROUP):
        if offer.name in executors:
            unusable[f"{offer.name} ({offer.value})"] = "the name is taken"
            continue
        loaded = _load(offer)
        if isinstance(loaded, str):
            unusable[offer.name] = loaded
        else:
            executors[offer.name] = loaded
    return Registry(executors, unusable)


def _load(offer: EntryPoint) -> Executor | str:
    """The executor, or why there is none. Foreign code may fail in any way and must not take the others along."""
    try:
        executor: Executor = offer.load()()
    except Exception as error:
        return f"{offer.value} failed with {type(error).__name__}: {error}"
    missing = [name for name in ("name", "validate", "prepare") if not hasattr(executor, name)]
    if missing:
        return f"{offer.value} has no {', '.join(missing)}"
    if not isinstance(executor, SlotExecutor | DetachedExecutor):
        return f"{offer.value} has no execute, and no launch, observe and cancel in its place"
    return executor
