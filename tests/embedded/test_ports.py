"""Ports: what was asked for or a refusal, else the usual one or its next free neighbour, said aloud."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from domain.errors import Conflict
from embedded.folder import Ports
from embedded.ports import Asked, choose, free_port


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_the_ports_of_the_last_start_are_used_again() -> None:
    saved = Ports(temporal=free_port(), ui=free_port(), api=free_port())
    assert choose(Asked(), saved) == (saved, [])


def test_a_usual_port_that_is_taken_gives_way_and_says_so(taken: int) -> None:
    ports, moved = choose(Asked(), Ports(temporal=free_port(), ui=free_port(), api=taken))
    assert ports.api != taken
    assert len(moved) == 1
    assert f"port {taken} is in use" in moved[0]
    assert f"(pid {os.getpid()})" in moved[0]
    assert str(ports.api) in moved[0]


def test_a_port_asked_for_is_refused_when_it_is_taken(taken: int) -> None:
    with pytest.raises(Conflict) as refusal:
        choose(Asked(api=taken), None)
    assert refusal.value.code == "embedded.port_in_use"
    assert f"port {taken} is in use" in refusal.value.message
    assert f"(pid {os.getpid()})" in refusal.value.message
    assert refusal.value.hint is not None
    assert "--api-port" in refusal.value.hint


def test_a_port_asked_for_twice_is_refused() -> None:
    port = free_port()
    with pytest.raises(Conflict, match="asked for twice"):
        choose(Asked(temporal=port, ui=port), None)


def test_a_usual_port_gives_way_to_one_asked_for() -> None:
    port = free_port()
    ports, _ = choose(Asked(api=port), Ports(temporal=port, ui=port, api=port))
    assert ports.api == port
    assert len({ports.temporal, ports.ui, ports.api}) == 3


def test_a_port_with_only_a_closed_connection_on_it_is_free() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        port: int = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first keeps the port for a while
        client.close()
    assert choose(Asked(api=port), None)[0].api == port
