"""The one way to PostgreSQL: a pool that outlives the server's restarts, a bound on every wait, and the
refusals that its errors mean."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg
from sqlalchemy import event, exc, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from domain.errors import AlmanacError, Invalid, Unavailable

CONNECT_SECONDS = 3.0
COMMAND_SECONDS = 10.0
"""The longest that one transaction may take, the wait for a connection included."""

IDLE_SECONDS = 5.0
"""A connection that nobody has used for so long is tried out before it is used."""

_TRY_LATER = ("08", "28", "3D", "40", "53", "55", "57", "58", "XX", "25006")
"""Classes of SQLSTATE that say nothing against the statement: the connection, the login, a lost race between
transactions, resources, the operator's hand, the server's own trouble, a server that is only a copy."""

_NEVER_STORABLE = ("22", "54")
"""Data that no column takes: malformed text, numbers out of range, keys beyond an index's limit."""


class Database:
    """`url` is `postgresql+asyncpg://…`, by TCP or with `?host=/folder/of/the/socket`. Nothing is connected
    before the first use."""

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url)
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def transaction(self, timeout_seconds: float = COMMAND_SECONDS) -> AsyncIterator[AsyncConnection]:
        """Commits when the block ends, rolls back when it raises. Raises Unavailable `database.unavailable`
        when the server can't be reached, or not all is done in time; whether the block was committed is then
        not known. Raises Invalid `database.value_invalid` for data that can't be stored."""
        with answering():
            async with asyncio.timeout(timeout_seconds), self._engine.begin() as connection:
                yield connection

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A connection on which each statement stands alone. Raises as `transaction` does."""
        with answering():
            async with asyncio.timeout(COMMAND_SECONDS), self._reader.connect() as connection:
                yield connection

    async def healthy(self) -> bool:
        """Whether the database answers now, within the time to connect."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS), self.reading() as connection:
                await connection.execute(text("SELECT 1"))
        except (Unavailable, TimeoutError):
            return False
        return True

    async def close(self) -> None:
        await self._engine.dispose()


def open_engine(url: str, *, command_seconds: float = COMMAND_SECONDS) -> AsyncEngine:
    engine = create_async_engine(
        url,
        pool_size=8,
        max_overflow=8,
        pool_timeout=COMMAND_SECONDS,
        connect_args={
            "timeout": CONNECT_SECONDS,
            "command_timeout": command_seconds,
            "server_settings": {
                "application_name": "almanac",
                "timezone": "UTC",
                # A client that vanished in the middle must not keep its locks.
                "idle_in_transaction_session_timeout": str(int(COMMAND_SECONDS * 1000)),
                "jit": "off",
            },
        },
    )
    _try_out_idle(engine)
    return engine


def _try_out_idle(engine: AsyncEngine) -> None:
    """Notices a restarted server before a statement does, so that idle connections cost no refusal. A connection that
    was in use a moment ago only has to be open still: trying it out costs as much as a small transaction."""
    pool, dialect = engine.sync_engine.pool, engine.dialect

    @event.listens_for(pool, "checkin")
    def returned(_connection: Any, record: Any) -> None:
        record.info["returned_at"] = time.monotonic()

    @event.listens_for(pool, "checkout")
    def taken(connection: Any, record: Any, _proxy: Any) -> None:
        if connection.driver_connection.is_closed():
            raise exc.InvalidatePoolError
        now = time.monotonic()
        if now - record.info.get("returned_at", now) < IDLE_SECONDS:
            return
        try:
            dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as error:
            raise exc.InvalidatePoolError from error


@contextmanager
def answering() -> Iterator[None]:
    """Turns what the driver raises inside the block into the refusal that it means; defects pass unchanged."""
    try:
        yield
    except AlmanacError:
        raise
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        raise refusal from error


def refusal_of(error: Exception) -> AlmanacError | None:
    """What an error of the driver means for whoever asked; None when it is a defect of ours."""
    state = _sqlstate(error)
    if state == "42P01":
        return Unavailable(
            "database.schema_missing", "The database lacks tables of this version; run 'almanac migrate'."
        )
    if state.startswith(_NEVER_STORABLE):
        return Invalid("database.value_invalid", f"The database can't hold one of the values: {_first_line(error)}.")
    if state.startswith(_TRY_LATER) or _lost(error):
        return Unavailable("database.unavailable", f"The database does not answer: {_first_line(error)}.")
    return None


def _lost(error: Exception) -> bool:
    if isinstance(error, exc.DBAPIError):
        return error.connection_invalidated or isinstance(error, exc.InterfaceError)
    return isinstance(error, OSError | TimeoutError | exc.TimeoutError | asyncpg.InterfaceError)


def _sqlstate(error: Exception) -> str:
    cause = error.orig if isinstance(error, exc.DBAPIError) else error
    return getattr(cause, "sqlstate", None) or ""


def _first_line(error: Exception) -> str:
    cause: BaseException = error
    if isinstance(error, exc.DBAPIError) and error.orig is not None:
        cause = error.orig.__cause__ or error.orig
    return (str(cause) or "no answer in time").splitlines()[0].rstrip(".")
