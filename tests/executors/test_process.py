"""Programs under their guardian, with real processes: how they end, what is kept, and that nothing is left."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from executors import process
from executors.process import Captured, Command, Ended, Guardians, Program

PATIENCE_SECONDS = 30


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.2)


GUARDIANS = Guardians()


def program(command: Command) -> Program:
    return Program(command, GUARDIANS)


def command(directory: Path, *argv: str, environment: Mapping[str, str] | None = None) -> Command:
    stdout, stderr = directory / "stdout.log", directory / "stderr.log"
    stdout.touch()
    stderr.touch()
    return Command(argv, {"PATH": os.environ["PATH"], **(environment or {})}, directory, stdout, stderr)


def shell(directory: Path, script: str, timeout_seconds: float | None = None) -> Command:
    return replace(command(directory, "sh", "-c", script), timeout_seconds=timeout_seconds)


async def said(directory: Path) -> str:
    """Waits for a line that a script says by `> said`, and makes the place where it says it."""
    return (await asyncio.to_thread((directory / "said").read_text)).strip()


def listen(directory: Path) -> None:
    os.mkfifo(directory / "said")


@contextmanager
def watching(pids: list[int]) -> Iterator[list[int]]:
    """Descriptors of the processes, which stay theirs even when a pid is used again."""
    descriptors = [os.pidfd_open(pid) for pid in pids]
    yield descriptors
    for descriptor in descriptors:
        os.close(descriptor)


def has_ended(descriptor: int, patience_seconds: float = PATIENCE_SECONDS) -> bool:
    return bool(select.select([descriptor], [], [], patience_seconds)[0])


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def test_output_and_exit_code(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    ended = await program(shell(tmp_path, "echo out; echo err >&2; exit 3")).run()
    assert (ended.exit_code, ended.signal, ended.stopped, ended.problem) == (3, None, None, None)
    assert not ended.succeeded
    assert ended.how == "ended with exit code 3"
    assert (tmp_path / "stdout.log").read_text() == "out\n"
    assert (tmp_path / "stderr.log").read_text() == "err\n"
    assert (ended.stdout, ended.stderr) == (Captured(4, 0), Captured(4, 0))
    assert before <= ended.started_at <= ended.ended_at <= datetime.now(UTC)


async def test_success(tmp_path: Path) -> None:
    assert (await program(command(tmp_path, "true")).run()).succeeded


async def test_it_gets_its_arguments_as_they_are(tmp_path: Path) -> None:
    await program(command(tmp_path, "printf", "%s|", "a b", "$HOME", "; rm x", "", "ü\n")).run()
    assert (tmp_path / "stdout.log").read_text() == "a b|$HOME|; rm x||ü\n|"


async def test_it_runs_where_it_should_with_that_environment_and_no_other(tmp_path: Path) -> None:
    script = "import os, json; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    await program(command(tmp_path, sys.executable, "-c", script, environment={"GIVEN": "yes"})).run()
    directory, environment = json.loads((tmp_path / "stdout.log").read_text())
    assert directory == str(tmp_path)
    environment.pop("LC_CTYPE", None)
    assert environment == {"PATH": os.environ["PATH"], "GIVEN": "yes"}


async def test_it_has_a_session_of_its_own_no_input_and_no_stray_descriptors(tmp_path: Path) -> None:
    script = "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()), os.listdir('/proc/self/fd'))"
    await program(command(tmp_path, sys.executable, "-c", script)).run()
    assert (tmp_path / "stdout.log").read_text() == "True '' ['0', '1', '2', '3']\n"


async def test_a_broken_pipe_ends_it_as_in_a_shell(tmp_path: Path) -> None:
    ended = await program(shell(tmp_path, "yes | head -n 1")).run()
    assert ended.succeeded
    assert (tmp_path / "stderr.log").read_text() == ""


async def test_a_missing_program_is_a_known_failure(tmp_path: Path) -> None:
    ended = await program(command(tmp_path, "no-such-program")).run()
    assert (ended.exit_code, ended.how) == (127, "was not found")


async def test_a_program_that_is_none_is_a_known_failure(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("1,2,3")
    ended = await program(command(tmp_path, str(tmp_path / "data"))).run()
    assert (ended.exit_code, ended.how) == (126, "could not be executed: Permission denied")


async def test_a_missing_directory_is_a_known_failure(tmp_path: Path) -> None:
    ended = await program(replace(command(tmp_path, "true"), directory=tmp_path / "gone")).run()
    assert ended.exit_code == 126
    assert ended.how.startswith("could not be started: ")


async def test_a_missing_log_is_a_known_failure(tmp_path: Path) -> None:
    given = command(tmp_path, "true")
    given.stdout.unlink()
    ended = await program(given).run()
    assert ended.exit_code == 126
    assert ended.how.startswith("could not be started: ")


async def test_an_impossible_argument_is_a_known_failure(tmp_path: Path) -> None:
    ended = await program(command(tmp_path, "echo", "a\0b")).run()
    assert ended.exit_code == 126


async def test_a_signal_is_told_from_an_exit_code(tmp_path: Path) -> None:
    ended = await program(shell(tmp_path, "kill -KILL $$")).run()
    assert (ended.exit_code, ended.signal, ended.how) == (None, 9, "was ended by signal 9 (Killed)")


@pytest.mark.usefixtures("short_grace")
async def test_a_timeout_stops_it(tmp_path: Path) -> None:
    ended = await program(shell(tmp_path, "trap 'echo last words; exit 0' TERM; sleep 1000 & wait", 0.3)).run()
    assert ended.stopped == "timeout"
    assert not ended.succeeded
    assert (tmp_path / "stdout.log").read_text() == "last words\n"


@pytest.mark.usefixtures("short_grace")
async def test_who_ignores_sigterm_is_killed_with_all_descendants(tmp_path: Path) -> None:
    listen(tmp_path)
    script = """
        trap '' TERM
        sleep 1000 & one=$!
        setsid sh -c 'sleep 1000; sleep 1000' & two=$!
        (setsid sleep 1000 & echo $! > three)
        echo $$ $one $two $(cat three) > said
        wait; wait; sleep 1000
    """
    running = asyncio.create_task(program(shell(tmp_path, script)).run())
    with watching([int(pid) for pid in (await said(tmp_path)).split()]) as tree:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(tree) == 4
        assert all(has_ended(descriptor, 0) for descriptor in tree)


@pytest.mark.usefixtures("short_grace")
async def test_cancelling_waits_for_the_end_and_says_how_it_was(tmp_path: Path) -> None:
    listen(tmp_path)
    stopped = program(shell(tmp_path, "trap 'echo bye; exit 4' TERM; echo ready > said; sleep 1000 & wait"))
    running = asyncio.create_task(stopped.run())
    await said(tmp_path)
    running.cancel()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stopped.ended is not None
    assert (stopped.ended.stopped, stopped.ended.exit_code) == ("cancelled", 4)
    assert (tmp_path / "stdout.log").read_text() == "bye\n"


async def test_cancelling_before_it_started_leaves_nothing(tmp_path: Path) -> None:
    stopped = program(command(tmp_path, "sleep", "1000"))
    running = asyncio.create_task(stopped.run())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stopped.ended is not None
    assert stopped.ended.stopped == "cancelled"


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize(
    "leave", ["sleep 1000 &", "setsid sleep 1000 &", "setsid sh -c 'trap \"\" TERM; sleep 1000' &"]
)
async def test_what_it_leaves_behind_ends_with_it(tmp_path: Path, leave: str) -> None:
    listen(tmp_path)
    script = f"{leave} echo $! > said; read go < said; echo done"
    running = asyncio.create_task(program(shell(tmp_path, script)).run())
    with watching([int(await said(tmp_path))]) as (left,):
        await asyncio.to_thread((tmp_path / "said").write_text, "go\n")
        ended = await running
        assert has_ended(left, 0)
    assert ended.exit_code == 0
    assert (tmp_path / "stdout.log").read_text() == "done\n"


@pytest.mark.usefixtures("short_grace")
async def test_output_of_whom_it_leaves_behind_is_kept(tmp_path: Path) -> None:
    script = "sh -c 'trap \"echo told to go; exit\" TERM; echo ready > told; sleep 1000 & wait' & read line < told"
    os.mkfifo(tmp_path / "told")
    await program(shell(tmp_path, script)).run()
    assert (tmp_path / "stdout.log").read_text() == "told to go\n"


async def test_closing_its_output_does_not_end_it(tmp_path: Path) -> None:
    ended = await program(shell(tmp_path, "exec >&- 2>&-; exit 5")).run()
    assert ended.exit_code == 5


WORKER = """
import asyncio, sys
from pathlib import Path
from executors import process
process.GRACE_SECONDS = 0.2
directory = Path(sys.argv[1])
for name in ("out", "err"):
    (directory / name).touch()
command = process.Command(
    ("sh", "-c", sys.argv[2]), {"PATH": "/usr/bin:/bin"}, directory, directory / "out", directory / "err"
)
print(asyncio.run(process.Program(command, process.Guardians()).run()))
"""


def start_worker(directory: Path, script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(directory), script],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


async def test_all_of_it_ends_when_its_worker_is_killed(tmp_path: Path) -> None:
    listen(tmp_path)
    script = """
        trap '' TERM
        sleep 1000 & one=$!
        setsid sh -c 'trap "" TERM; sleep 1000; sleep 1000' & two=$!
        echo words
        echo $$ $one $two > said
        wait; wait; sleep 1000
    """
    with start_worker(tmp_path, script) as worker:
        pids = [int(pid) for pid in (await said(tmp_path)).split()]
        with watching([*pids, parent_of(pids[0])]) as tree:
            worker.kill()
            assert all(has_ended(descriptor) for descriptor in tree)
    assert (tmp_path / "out").read_text() == "words\n"


async def test_the_program_ends_when_its_guardian_is_killed(tmp_path: Path) -> None:
    listen(tmp_path)
    running = asyncio.create_task(program(shell(tmp_path, "sleep 1000 & echo $$ $! $PPID > said; wait")).run())
    pid, child, guardian = (int(word) for word in (await said(tmp_path)).split())
    with watching([pid, child]) as tree:
        os.kill(guardian, signal.SIGKILL)
        ended = await running
        assert all(has_ended(descriptor) for descriptor in tree)
    assert (ended.exit_code, ended.how) == (None, "lost its guardian and was killed")
    assert not ended.succeeded


@pytest.mark.usefixtures("short_grace")
async def test_a_terminated_guardian_ends_the_program_first(tmp_path: Path) -> None:
    listen(tmp_path)
    running = asyncio.create_task(
        program(shell(tmp_path, "trap 'exit 7' TERM; echo $PPID > said; sleep 1000 & wait")).run()
    )
    os.kill(int(await said(tmp_path)), signal.SIGTERM)
    ended = await running
    assert ended.exit_code == 7


async def test_many_run_at_once(tmp_path: Path) -> None:
    commands = []
    for n in range(50):
        (tmp_path / str(n)).mkdir()
        commands.append(shell(tmp_path / str(n), f"echo {n}; exit {n}"))
    ends = await asyncio.gather(*(program(command).run() for command in commands))
    assert [end.exit_code for end in ends] == list(range(50))
    assert [command.stdout.read_text() for command in commands] == [f"{n}\n" for n in range(50)]


async def test_a_large_environment_arrives_whole(tmp_path: Path) -> None:
    given = {"LC_CTYPE": "C.UTF-8", **{f"V{n}": str(n) * 20_000 for n in range(20)}}
    script = "import os, hashlib; print(hashlib.sha256(repr(sorted(os.environ.items())).encode()).hexdigest())"
    await program(command(tmp_path, sys.executable, "-c", script, environment=given)).run()
    expected = sorted({"PATH": os.environ["PATH"], **given}.items())
    assert (tmp_path / "stdout.log").read_text().strip() == hashlib.sha256(repr(expected).encode()).hexdigest()


async def test_too_large_an_environment_is_a_known_failure(tmp_path: Path) -> None:
    ended = await program(command(tmp_path, "true", environment={"BIG": "x" * 3_000_000})).run()
    assert (ended.exit_code, ended.how) == (126, "could not be executed: Argument list too long")


async def test_a_nameless_variable_is_a_known_failure(tmp_path: Path) -> None:
    ended = await program(command(tmp_path, "true", environment={"": "x"})).run()
    assert (ended.exit_code, ended.how) == (126, "could not be executed: Invalid argument")


@pytest.mark.usefixtures("short_grace")
async def test_losing_the_source_of_guardians_harms_no_program(tmp_path: Path) -> None:
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        listen(tmp_path / name)
    guardians = Guardians()
    script = "trap 'exit 6' TERM; echo $PPID > said; sleep 1000 & wait"
    before = asyncio.create_task(Program(shell(tmp_path / "before", script), guardians).run())
    guardian = int(await said(tmp_path / "before"))
    source = parent_of(guardian)
    with watching([source]) as (gone,):
        os.kill(source, signal.SIGKILL)
        assert has_ended(gone)
    after = asyncio.create_task(Program(shell(tmp_path / "after", script), guardians).run())
    assert parent_of(int(await said(tmp_path / "after"))) != source
    os.kill(guardian, signal.SIGTERM)
    assert (await before).exit_code == 6
    after.cancel()
    with pytest.raises(asyncio.CancelledError):
        await after


async def test_the_source_of_guardians_ends_when_nobody_can_order(tmp_path: Path) -> None:
    listen(tmp_path)
    guardians = Guardians()
    running = asyncio.create_task(Program(shell(tmp_path, "echo $PPID > said; read x < said"), guardians).run())
    with watching([parent_of(int(await said(tmp_path)))]) as (source,):
        await asyncio.to_thread((tmp_path / "said").write_text, "go\n")
        assert (await running).exit_code == 0
        del guardians, running
        assert has_ended(source)


async def test_of_a_flood_the_first_and_the_last_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "KEEP_BYTES", 100)
    ended = await program(shell(tmp_path, "echo first; seq 1 100000; echo last")).run()
    written = len("first\n" + "".join(f"{n}\n" for n in range(1, 100_001)) + "last\n")
    assert ended.stdout == Captured(written, written - 200)
    kept = (tmp_path / "stdout.log").read_bytes()
    marker = f"\n[{written - 200} bytes left out]\n".encode()
    head, found, tail = kept.partition(marker)
    assert (len(head), found, len(tail)) == (100, marker, 100)
    assert head.startswith(b"first\n1\n2\n")
    assert tail.endswith(b"99999\n100000\nlast\n")


FLOOD_MEGABYTES = 200
MEMORY = r"""
import asyncio, re, sys
from pathlib import Path
from executors.process import Captured, Command, Ended, Guardians, Program

async def main():
    programs, guardians = [], Guardians()
    for index in range(4):
        directory = Path(sys.argv[1]) / str(index)
        directory.mkdir()
        stdout, stderr = directory / "out", directory / "err"
        stdout.touch(), stderr.touch()
        flood = "head -c $0 /dev/zero; grep VmHWM /proc/$PPID/status >&2"
        argv = ("sh", "-c", flood, str(int(sys.argv[2]) << 20))
        command = Command(argv, {"PATH": "/usr/bin:/bin"}, directory, stdout, stderr)
        programs.append(Program(command, guardians).run())
    ends = await asyncio.gather(*programs)
    assert all(end.succeeded and end.stdout.size == int(sys.argv[2]) << 20 for end in ends), ends
    texts = [Path("/proc/self/status").read_text(), *(path.read_text() for path in Path(sys.argv[1]).rglob("err"))]
    print(*(int(re.search(r"VmHWM:\s+(\d+)", text)[1]) // 1024 for text in texts))

asyncio.run(main())
"""


def test_a_flood_fills_neither_memory_nor_disk(tmp_path: Path) -> None:
    worker = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path), str(FLOOD_MEGABYTES)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    megabytes = [int(peak) for peak in worker.stdout.split()]
    assert len(megabytes) == 5
    assert max(megabytes) < FLOOD_MEGABYTES / 4
    assert sum(path.stat().st_size for path in tmp_path.rglob("out")) < 4 * 2.1 * process.KEEP_BYTES


def test_a_success_that_was_stopped_is_none() -> None:
    now = datetime.now(UTC)
    assert Ended(now, now, 0.0, 0).succeeded
    assert not Ended(now, now, 0.0, 0, stopped="timeout").succeeded
