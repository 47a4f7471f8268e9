"""All zone ids that schedules may use, straight from the package's own list."""

from __future__ import annotations

from importlib import resources

_ALL = resources.files("tzdata").joinpath("zones").read_text("ascii").split()
_FILES = resources.files("tzdata").joinpath("zoneinfo")
ZONES = ["UTC", *sorted(name for name in _ALL if "/" in name and not name.startswith(("Etc/GMT", "Etc/Greenwich")))]

DISTINCT = list({_FILES.joinpath(*name.split("/")).read_bytes(): name for name in ZONES}.values())
"""The same without the links: one id for each different clock."""
