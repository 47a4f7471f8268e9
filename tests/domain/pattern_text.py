"""Random pattern texts of the accepted grammar, from a seed or from hypothesis."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_FIELDS: tuple[tuple[int, int, list[str]], ...] = (
    (0, 59, []),
    (0, 23, []),
    (1, 31, []),
    (1, 12, _MONTHS),
    (0, 7, _WEEKDAYS),
)


def random_pattern(random: Random) -> str:
    """A pattern due often enough to meet a clock change: dense, or at a few times, mostly without a date."""
    minutes = random.choice(["*", "*/5", "*/7", "*/15", "*/30", "0", "30", "59", _field(random, 0), _field(random, 0)])
    hours = random.choice(["*", "*", "*/2", "0", "2", "0-3", "22-23,0-2", _field(random, 1), _field(random, 1)])
    if random.random() < 0.6:
        return f"{minutes} {hours} * * *"
    return f"{minutes} {hours} {_field(random, 2)} {random.choice(['*', _field(random, 3)])} {_field(random, 4)}"


def any_pattern(random: Random) -> str:
    """A pattern from the whole grammar. Its fields are all in range, but it may match no date."""
    return " ".join(_field(random, index) for index in range(5))


def patterns() -> st.SearchStrategy[str]:
    """`any_pattern` for hypothesis, favouring the plain ones that people write."""
    return st.randoms(use_true_random=False).map(any_pattern) | st.randoms(use_true_random=False).map(random_pattern)


def _field(random: Random, index: int) -> str:
    return ",".join(_item(random, *_FIELDS[index]) for _ in range(random.choice([1, 1, 1, 2, 3])))


def _item(random: Random, low: int, high: int, names: list[str]) -> str:
    step = random.choice(["", "", f"/{random.randint(1, high)}"])
    shape = random.random()
    if shape < 0.35:
        return f"*{step}"
    first = random.randint(low, high)
    if shape < 0.65:
        return _value(random, first, low, names)
    last = random.randint(first, high)
    return f"{_value(random, first, low, names)}-{_value(random, last, low, names)}{step}"


def _value(random: Random, value: int, low: int, names: list[str]) -> str:
    """A number, sometimes with a leading zero, or a name in any case. 7 stays a number: a range may begin with it."""
    if names and value - low < len(names) and random.random() < 0.5:
        name = names[value - low]
        return random.choice([name, name.lower(), name.title()])
    return random.choice([str(value), f"{value:02}"])
