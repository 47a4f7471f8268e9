"""All zone ids that schedules may use, straight from the package's own list."""

from __future__ import annotations

from importlib import resources

_ALL = resources.files("tzdata").joinpath("zones").read_text("ascii").split()
ZONES = ["UTC", *sorted(name for name in _ALL if "/" in name and not name.startswith(("Etc/GMT", "Etc/Greenwich")))]
