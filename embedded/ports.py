"""Which TCP ports a start uses: the ones asked for or none, else the usual ones or their next free neighbours."""

from __future__ import annotations

import random
import socket
from dataclasses import asdict, dataclass

import psutil

from domain.errors import Conflict
from embedded.folder import Ports

PREFERRED = Ports(temporal=7233, ui=8233, api=8400)

_NEIGHBOURS = 100

_QUIET = range(10_000, 30_000)
_chance = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Asked:
    """The ports that somebody insists on; None leaves the choice."""

    temporal: int | None = None
    ui: int | None = None
    api: int | None = None


def choose(asked: Asked, saved: Ports | None) -> tuple[Ports, list[str]]:
    """The ports to use, and a sentence for each that had to give way.

    A port asked for is taken or refused: Conflict `embedded.port_in_use` names it, its holder where the system
    tells, and the option. One not asked for is the last start's (`saved`), or the preferred one, or the next free.
    """
    usual = asdict(saved or PREFERRED)
    insisted = {port for port in asdict(asked).values() if port}
    chosen: dict[str, int] = {}
    moved: list[str] = []
    for name, wanted in asdict(asked).items():
        if wanted is not None:
            _insist(name, wanted, taken=chosen)
            chosen[name] = wanted
            continue
        chosen[name] = _next_free(usual[name], name, avoid={*chosen.values(), *insisted})
        if chosen[name] != usual[name]:
            moved.append(f"port {usual[name]} is in use{_by_whom(usual[name])}: {name} listens on {chosen[name]}")
    return Ports(**chosen), moved


def free_port() -> int:
    """A port nobody listens on at this moment. It is none of those that systems give to outgoing connections, which
    could have taken it before whoever asked for it listens there."""
    while True:
        port = _chance.choice(_QUIET)
        if _problem(port) is None:
            return port


def _insist(name: str, port: int, *, taken: dict[str, int]) -> None:
    problem = "is asked for twice" if port in taken.values() else _problem(port)
    if problem:
        raise Conflict(
            "embedded.port_in_use",
            f"port {port} {problem}",
            hint=f"choose another with --{name}-port, or leave the option out to have a free one picked",
        )


def _next_free(first: int, name: str, avoid: set[int]) -> int:
    for port in range(first, min(first + _NEIGHBOURS, 65536)):
        if port not in avoid and _problem(port) is None:
            return port
    raise Conflict(
        "embedded.port_in_use",
        f"no port from {first} to {first + _NEIGHBOURS - 1} is free",
        hint=f"choose one with --{name}-port",
    )


def _problem(port: int) -> str | None:
    with socket.socket() as probe:
        # As the servers do: a connection that lingers after its server's end doesn't keep the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            return "may not be used by this user"
        except OSError:
            return f"is in use{_by_whom(port)}"
    return None


def _by_whom(port: int) -> str:
    """` by NAME (pid N)`, or nothing where the system doesn't tell."""
    try:
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
            if listens and connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except psutil.Error:
        pass
    return ""
