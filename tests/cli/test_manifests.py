"""What is read from files, and where a mistake is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.manifests import read_all
from domain.pipeline import PipelineDefinition
from domain.schedule import ScheduleDefinition

PIPELINE = """\
kind: pipeline
name: a/b
steps:
  - id: one
    command: [echo, "1"]
"""

SCHEDULE = """\
kind: schedule
name: a/b
cron: " 0 9 * * * "
timezone: Europe/Berlin
payload: {pipeline: a/b, version: current}
"""


def test_a_file_has_several_documents(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(f"# first\n---\n{PIPELINE}---\n{SCHEDULE}---\n")

    manifests, mistakes = read_all([tmp_path])

    assert mistakes == []
    assert [(m.place.document, m.place.line, m.kind) for m in manifests] == [(1, 3, "pipeline"), (2, 9, "schedule")]
    pipeline, schedule = (manifest.definition for manifest in manifests)
    assert isinstance(pipeline, PipelineDefinition)
    assert pipeline.steps[0].command == ("echo", "1")
    assert isinstance(schedule, ScheduleDefinition)
    assert schedule.cron == "0 9 * * *"


def test_folders_are_read_to_the_bottom_and_only_for_yaml(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "y" / "deep.yml").write_text(PIPELINE)
    (tmp_path / "x" / "notes.txt").write_text("no YAML: [")

    manifests, mistakes = read_all([tmp_path])

    assert (len(manifests), mistakes) == (1, [])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("notes: on", "on"),
        ("notes: 2027-03-14", "2027-03-14"),
        ("notes: 1_000", "1_000"),
        ("notes: 0x1F", "0x1F"),
        ("notes: 012", "012"),
        ("notes: Yes", "Yes"),
        ("notes: 12:30:45", "12:30:45"),
        ("notes: '5'", "5"),
    ],
)
def test_a_word_stays_the_word_it_is(tmp_path: Path, written: str, read: str) -> None:
    (tmp_path / "a.yaml").write_text(f"{SCHEDULE}start_deadline: 17:30\n{written}\n")

    manifests, mistakes = read_all([tmp_path / "a.yaml"])

    assert mistakes == []
    definition = manifests[0].definition
    assert isinstance(definition, ScheduleDefinition)
    assert (definition.start_deadline, definition.notes) == ("17:30", read)


@pytest.mark.parametrize(
    ("text", "code", "document", "line"),
    [
        (SCHEDULE + "priority: high\n", "request.field_type", 1, 6),
        (SCHEDULE + "priority: true\n", "request.field_type", 1, 6),
        (SCHEDULE + "priorty: 1\n", "request.field_unknown", 1, 6),
        (SCHEDULE.replace("0 9 * * *", "0 9 30 2 *"), "schedule.validation.cron_never", 1, 3),
        (SCHEDULE.replace("Europe/Berlin", "CET"), "schedule.validation.zone_abbreviation", 1, 4),
        (SCHEDULE.replace("a/b\n", "a//b\n"), "schedule.validation.name_invalid", 1, 2),
        (SCHEDULE.replace("timezone", "timezne"), "request.field_missing", 1, 1),
        (PIPELINE + "---\n" + PIPELINE.replace('"1"]', "1]"), "request.field_type", 2, 11),
        (PIPELINE + "    needs: [two]\n", "pipeline.validation.needs_unknown", 1, 6),
        ("kind: job\n", "apply.kind_unknown", 1, 1),
        ("name: a\n", "apply.kind_unknown", 1, 1),
        ("kind: [pipeline]\n", "apply.kind_unknown", 1, 1),
        ("- kind: pipeline\n", "apply.not_an_object", 1, 1),
        ("just words\n", "apply.not_an_object", 1, 1),
        ("kind: pipeline\nname: a\nname: b\n", "apply.not_yaml", 1, 3),
        ("kind: pipeline\n? [a]\n: b\n", "apply.not_yaml", 1, 2),
        (PIPELINE + "---\nkind: [\n", "apply.not_yaml", 2, 8),
        ("kind: pipeline\nname: !!python/object/apply:os.getcwd []\n", "apply.not_yaml", 1, 2),
        ("kind: schedule\npayload: &a {again: *a}\n", "apply.not_json", 1, 1),
        ("kind: schedule\npayload: {a: !!float .nan}\n", "apply.not_json", 1, 1),
        ("[" * 20_000, "apply.not_yaml", 1, 1),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, code: str, document: int, line: int) -> None:
    (tmp_path / "a.yaml").write_text(text)

    _, mistakes = read_all([tmp_path / "a.yaml"])

    found = [(m.refusal.code, m.place.document, m.place.line) for m in mistakes]
    assert found == [(code, document, line)], mistakes[0].refusal


def test_a_name_twice_is_a_mistake_that_names_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SCHEDULE)
    (tmp_path / "b.yaml").write_text(f"\n{SCHEDULE.replace('a/b', 'A/b', 1)}")

    _, (mistake,) = read_all([tmp_path])

    assert mistake.refusal.code == "apply.name_duplicate"
    assert (mistake.place.file.name, mistake.place.line) == ("b.yaml", 3)
    assert str(tmp_path / "a.yaml") in mistake.refusal.message


@pytest.mark.parametrize("pattern", ["* * * * *", "*/5 * * * *"])
def test_a_pattern_without_quotes_is_told_to_take_them(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a.yaml").write_text(f"kind: schedule\ncron: {pattern}\n")

    _, (mistake,) = read_all([tmp_path])

    assert (mistake.refusal.code, mistake.place.line) == ("apply.not_yaml", 2)
    assert "quotes" in str(mistake.refusal.hint)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"kind: \x00"])
def test_a_file_that_is_no_text_is_a_mistake(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.yaml").write_bytes(content)

    _, mistakes = read_all([tmp_path / "a.yaml"])

    assert len(mistakes) == 1
