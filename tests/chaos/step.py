"""What every step of the chaos run does: tells the ledger that it begins, works for a while, tells that it ends.

    python -I -S step.py LEDGER SECONDS FAILING

Runs on its own, so that it starts in a few milliseconds. A line is one write to a file opened for appending, so lines
of many processes never mix; beginnings and ends are on disk before the step goes on. While it works it says so a few
times a second, so that of a step that was killed it is known how long it certainly worked. Of FAILING runs one fails,
which one its id decides; 0 is none.
"""

import hashlib
import json
import os
import signal
import sys
import time

BEAT_SECONDS = 0.25


def main(ledger: str, seconds: float, failing: int) -> int:
    book = os.open(ledger, os.O_WRONLY | os.O_APPEND)
    names = {"run": "RUN_ID", "execution": "EXECUTION_ID", "schedule": "SCHEDULE_ID", "step": "STEP_ID"}
    me = {key: os.environ.get(f"ALMANAC_{name}") for key, name in names.items()} | {"pid": os.getpid()}

    def tell(what: str, *, lasting: bool = True) -> None:
        os.write(book, (json.dumps({"at": time.time(), "what": what, **me}) + "\n").encode())
        if lasting:
            os.fsync(book)

    def stop(*_: object) -> None:
        tell("stopped")
        os._exit(143)

    signal.signal(signal.SIGTERM, stop)
    tell("began")
    chance = int.from_bytes(hashlib.sha256(str(me["run"]).encode()).digest()[:4], "big")
    until = time.monotonic() + seconds * (0.5 + chance % 100 / 100)
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(BEAT_SECONDS, left))
        tell("beat", lasting=False)
    if failing and chance // 100 % failing == 0:
        tell("failed")
        return 3
    tell("ended")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
