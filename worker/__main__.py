"""`python -m worker`: runs until SIGTERM or SIGINT, then stops admitting and drains."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

import uvloop
from pydantic import ValidationError
from temporalio.client import Client

from executors.vault import KeyUnusable, Vault
from readmodel.database import Database
from worker import wiring
from worker.sandbox import bytecode_kept
from worker.settings import WorkerSettings

log = logging.getLogger("almanac.worker")
CONNECT_PAUSE_SECONDS = 2


async def serve(settings: WorkerSettings) -> None:
    """Raises KeyUnusable."""
    database = Database(settings.database_url)
    vault = Vault.at(settings.secret_key_file)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    client = await _connected(settings, stop)
    if client is None:
        return
    executors = wiring.executors(client, database, vault)
    entities, slots = wiring.workers(client, database, executors, settings)
    try:
        async with entities, slots:
            log.info("worker.ready slots=%d name=%s", settings.max_concurrent_runs, settings.worker_name)
            await stop.wait()
            log.info("worker.draining seconds=%d", settings.drain_seconds)
    finally:
        await database.close()
    log.info("worker.stopped")


async def _connected(settings: WorkerSettings, stop: asyncio.Event) -> Client | None:
    """Tries until Temporal answers, and says so; None when asked to stop before."""
    while not stop.is_set():
        try:
            return await wiring.connect(settings)
        except RuntimeError as error:
            log.warning("worker.temporal_unreachable address=%s, trying again: %s", settings.temporal_address, error)
        try:
            await asyncio.wait_for(stop.wait(), CONNECT_PAUSE_SECONDS)
        except TimeoutError:
            continue
    return None


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        settings = WorkerSettings()
    except ValidationError as error:
        for problem in error.errors():
            print(f"ALMANAC_{'_'.join(str(p) for p in problem['loc']).upper()}: {problem['msg']}", file=sys.stderr)
        return 2
    try:
        with bytecode_kept():
            uvloop.run(serve(settings))
    except KeyUnusable as error:
        print(f"almanac worker: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
