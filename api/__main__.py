"""`python -m api`: serves REST until it is told to stop, then lets the requests in progress end."""

from __future__ import annotations

import os
import signal
import socket
import sys
from types import FrameType

import uvicorn
from pydantic import ValidationError

from api.app import create
from api.settings import Settings
from api.token import TokenUnusable

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
    except TokenUnusable as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{settings.api_host}:{settings.api_port} can't be listened on: {_reason(error)}")
    # The server raises the signal that stopped it once more when it has stopped.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    config = uvicorn.Config(app, timeout_graceful_shutdown=GRACE_SECONDS, server_header=False, access_log=False)
    with listener:
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def _reason(error: OSError) -> str:
    """Without the address, which `socket.create_server` puts into the system's words."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror)


def _refuse(why: str) -> int:
    print(f"almanac api: {why}", file=sys.stderr)
    return 1


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


sys.exit(main())
