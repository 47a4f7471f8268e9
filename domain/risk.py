"""The risk of parallel admission, in fixed words that an author has to accept by their version.

There is no list of files or resources that could make an overlap safe: a run finds its targets while it runs,
leaves some of them out of any list, and shares databases, browsers and the world outside with all others.
"""

from __future__ import annotations

from domain.errors import Invalid
from domain.schedule import Admission, ScheduleDefinition

TEXT_VERSION = 1
TEXT = (
    "Runs of this schedule will start while other runs of the same target are still going on. They may read what "
    "those have half written, overwrite each other's results in files, databases and other shared state, and do "
    "things in the outside world twice. Almanac can't detect or prevent this: separate run folders do not isolate "
    "anything outside of them. Accept this only if every step of the target is safe beside itself."
)


def check_acknowledged(definition: ScheduleDefinition) -> None:
    if definition.admission is Admission.SEQUENTIAL or definition.acknowledged_risk == TEXT_VERSION:
        return
    raise Invalid(
        "schedule.validation.acknowledgement_required",
        "Parallel admission needs an acknowledgement of its risk.",
        field="acknowledged_risk",
        hint=f"Read the text, then set acknowledged_risk to {TEXT_VERSION}.",
        text=TEXT,
        text_version=TEXT_VERSION,
    )
