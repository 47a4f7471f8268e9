"""The peer: APScheduler with its job store in PostgreSQL. Runs in an environment of its own and imports nothing else.

    peer_worker.py create|serve DATABASE_URL LEDGER N DUE

Set up to lose as little as it can: jobs are kept in the database, and what falls due while nobody runs is still
started when somebody does.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

GRACE_SECONDS = 3600


def work(template: str) -> None:
    subprocess.run(["mktemp", template], check=True, stdout=subprocess.DEVNULL)


def scheduler(url: str, threads: int) -> Any:
    from apscheduler.executors.pool import ThreadPoolExecutor
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.blocking import BlockingScheduler

    return BlockingScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=url)},
        executors={"default": ThreadPoolExecutor(threads)},
        job_defaults={"misfire_grace_time": GRACE_SECONDS, "coalesce": True, "max_instances": 1},
        timezone=UTC,
    )


def create(url: str, ledger: str, n: int, due: datetime) -> None:
    """Jobs are written to the store when a scheduler starts, so this one starts with its clock stopped."""
    import threading

    jobs = scheduler(url, 1)
    for number in range(n):
        arguments = [f"{ledger}/{number}.XXXXXX"]
        jobs.add_job(work, "cron", hour=due.hour, minute=due.minute, args=arguments, id=str(number))
    threading.Timer(1.0, jobs.shutdown).start()
    jobs.start(paused=True)


def main() -> None:
    act, url, ledger, n, due = sys.argv[1:]
    if act == "create":
        create(url, ledger, int(n), datetime.fromtimestamp(float(due), UTC))
    else:
        scheduler(url, int(n)).start()


if __name__ == "__main__":
    main()
