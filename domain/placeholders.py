"""What stands for a value in a text of a step: `${name}` for a parameter or for a variable that all groups have, and
`$$` for a dollar sign."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from string import Template

from pydantic import JsonValue

from domain.errors import Invalid

_SOLE = re.compile(r"\$\{(\w+)\}", re.ASCII)


def check(parts: Mapping[str, Iterable[str]], known: set[str], field: str) -> None:
    """Refuses what names something that is not `known`. `parts` are the texts by the place in `field` that they are
    in."""
    for part, found in parts.items():
        for text in found:
            template = Template(text)
            unknown = [] if template.is_valid() else ["$"]
            unknown += [name for name in template.get_identifiers() if name not in known]
            if unknown:
                raise Invalid(
                    "pipeline.validation.placeholder_unknown",
                    f"'{unknown[0]}' stands for nothing that this step has.",
                    field=f"{field}.{part}",
                    hint=f"${{name}} may name: {', '.join(sorted(known)) or 'nothing'}. Write $$ for a dollar sign.",
                )


def texts(value: JsonValue) -> Iterator[str]:
    """Every text in it, at any depth; not the names of its fields."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from texts(item)
        case dict():
            for item in value.values():
                yield from texts(item)


def filled(value: JsonValue, values: Mapping[str, str], alone: Mapping[str, JsonValue] | None = None) -> JsonValue:
    """The same with each text filled in. A text that is one placeholder and nothing else becomes what `alone` has of
    that name, as it is, where it has it."""
    match value:
        case str():
            sole = _SOLE.fullmatch(value)
            return alone[sole[1]] if alone and sole and sole[1] in alone else Template(value).substitute(values)
        case list():
            return [filled(item, values, alone) for item in value]
        case dict():
            return {key: filled(item, values, alone) for key, item in value.items()}
        case _:
            return value
