"""Placeholder until the occurrence function is merged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class Occurrence:
    at: datetime
    nominal: tuple[datetime, ...]
    kind: Literal["ordinary", "gap", "overlap"]
