"""`python -m api`: serves REST until it is told to stop, then lets the requests in progress end."""

from __future__ import annotations

import signal
import socket
import sys
from types import FrameType

import uvicorn
from pydantic import ValidationError

from api.app import create
from api.settings import Settings
from api.token import TokenUnusable
from executors.vault import KeyUnusable

GRACE_SECONDS = 10
BACKLOG = 2048


def main() -> int:
    try:
        settings = Settings()
    except ValidationError as error:
        wrong = "; ".join(f"ALMANAC_{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors())
        return _refuse(f"the settings can't be used: {wrong}")
    try:
        app = create(settings)
        listener = _listener(settings.api_host, settings.api_port)
    except (TokenUnusable, KeyUnusable) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{settings.api_host}:{settings.api_port} can't be listened on: {error.strerror}")
    # The server raises the signal that stopped it once more when it has stopped.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    config = uvicorn.Config(app, timeout_graceful_shutdown=GRACE_SECONDS, server_header=False, access_log=False)
    with listener:
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP: only then does asyncio send each answer at once instead of waiting for the last one's receipt.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _refuse(why: str) -> int:
    print(f"almanac api: {why}", file=sys.stderr)
    return 1


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


sys.exit(main())
