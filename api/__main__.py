"""`python -m api`: serves REST until it is told to stop, then lets the requests in progress end."""

from __future__ import annotations

import sys

import uvicorn
from pydantic import ValidationError

from api.app import create
from api.settings import Settings
from api.token import TokenUnusable

GRACE_SECONDS = 10


def main() -> int:
    try:
        settings = Settings()
        app = create(settings)
    except ValidationError as error:
        wrong = "; ".join(f"ALMANAC_{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors())
        print(f"almanac api: the settings can't be used: {wrong}", file=sys.stderr)
        return 1
    except TokenUnusable as error:
        print(f"almanac api: {error}", file=sys.stderr)
        return 1
    uvicorn.run(
        app,
        host=settings.api_host,
        port=settings.api_port,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
        access_log=False,
    )
    return 0


sys.exit(main())
