"""`python -m tests.chaos --minutes M --seed S`: a random workspace on the real stack under kills, and what is found.

The last line is one JSON object: `{"seed", "minutes", "occurrences", "runs", "kills", "violations"}`. Exit code 1 with
violations. The same seed is the same plan of workspace, acts and kills; what the machine makes of it differs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
from pathlib import Path

from tests.chaos import drive
from tests.chaos.plan import Size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long things are done and killed (30)")
    parser.add_argument("--seed", type=int, help="a random one without it")
    parser.add_argument("--schedules", type=int, default=56, help="how many schedules (56)")
    parser.add_argument("--act-every", type=float, default=2.0, help="seconds between acts, on average (2)")
    parser.add_argument("--blow-every", type=float, default=11.0, help="seconds between kills and halts (11)")
    parser.add_argument("--folder", type=Path, help="an empty folder that keeps data, logs and evidence")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if asked.seed is None else asked.seed
    size = Size(asked.minutes * 60, asked.schedules, asked.act_every, asked.blow_every)
    with contextlib.ExitStack() as left:
        folder = asked.folder or Path(left.enter_context(tempfile.TemporaryDirectory(prefix="almanac-chaos-")))
        folder.mkdir(parents=True, exist_ok=True)
        outcome = asyncio.run(drive.run(seed, size, folder.resolve()))
    drive.say(f"what was done\n{drive.counted(outcome)}")
    print(json.dumps(outcome.summary()))
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
