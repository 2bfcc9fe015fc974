"""The process that outlives a worker just long enough to kill what the worker left behind.

Owns nothing but its wait: it blocks until its input ends, which happens when the owner closes it
or dies, and then kills every process with the owner's mark. Started by ``owned_processes.start_guard``.
"""

from __future__ import annotations

import os
import sys

from environments.browser.owned_processes import kill_owned

KILL_DEADLINE_S = 5.0
"""Seconds for which new processes of the dead owner are looked for; nobody waits for this process."""


def main(owner: str) -> None:
    """Detach from the starter, wait for the owner's end, and clean up after it."""
    if os.fork():
        os._exit(0)
    while os.read(0, 4096):
        pass
    kill_owned(owner, KILL_DEADLINE_S)


if __name__ == "__main__":
    main(sys.argv[1])
