"""One driver for a run, on whichever machine: its lease, kept alive, and the end of a driver that lost it.

Owns the threads that renew the lease and take snapshots. Invariants: the lease is given back when the driver ends,
however it ends but by a kill; no snapshot holds up a renewal, however long it takes; a driver that another one replaced
is interrupted once, as by Ctrl-C, and says why.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cluster.errors import RunInUse, RunStopped
from records.stores.lease import BEAT_S, LeaseHeld, LeaseLost, RunLease
from records.stores.store import Store, StoreError

logger = logging.getLogger(__name__)
_JOIN_S = 5.0
"""Fixed: a renewal under way when the driver ends is left behind, and finds the lease given back."""


@contextmanager
def driving(
    store: Store,
    renew: Callable[[RunLease], Any] = RunLease.commit,
    wait_s: float = 0.0,
    tell: Callable[[str], object] = logger.warning,
    *,
    snapshot: Callable[[RunLease], Any] | None = None,
) -> Iterator[RunLease]:
    """Have the run in ``store`` for the block, alone on this machine; ``renew`` gives each sign of life.

    A driver of another machine that lives is waited for ``wait_s`` seconds: it may be one that is being ended. ``tell``
    is called with what is waited for. ``snapshot`` is called as often as ``renew``, beside it, and may take its time.

    Raises:
        RunInUse: another driver has the run.
        RunStopped: another driver took it over, or the store failed.
    """
    lease = RunLease(store)
    try:
        _take(lease, wait_s, tell)
    except StoreError as error:
        raise _stopped(error) from error
    renewal = _Renewal(lease, renew)
    beside = None if snapshot is None else _Renewal(lease, snapshot, interrupts=False)
    try:
        yield lease
    except StoreError as error:
        raise _stopped(error) from error
    except BaseException as error:
        if renewal.lost is None:
            raise
        raise _stopped(renewal.lost) from error
    finally:
        if beside is not None:
            beside.stop()
        renewal.stop()
        if renewal.lost is None:
            lease.give_back()


def _take(lease: RunLease, wait_s: float, tell: Callable[[str], object]) -> None:
    ends, told = time.monotonic() + wait_s, False
    while True:
        try:
            lease.take(alone=True)
            return
        except LeaseHeld as error:
            if time.monotonic() >= ends:
                raise RunInUse(str(error)) from error
            if not told:
                told = True
                tell(f"{error}. Waiting at most {wait_s:g} s for its end")


class _Renewal:
    """Renews a lease until stopped; ``lost`` is why it could not, of which it ``interrupts`` the driver."""

    def __init__(self, lease: RunLease, renew: Callable[[RunLease], Any], *, interrupts: bool = True) -> None:
        self.lost: LeaseLost | None = None
        self._interrupts = interrupts
        self._lease = lease
        self._renew = renew
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease-renewal", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join(_JOIN_S)

    def _keep(self) -> None:
        while not self._ending.wait(BEAT_S):
            try:
                self._renew(self._lease)
            except LeaseLost as error:
                logger.error("%s", error)
                self.lost = error
                main = threading.main_thread().ident
                if self._interrupts and main is not None and not self._ending.is_set():
                    signal.pthread_kill(main, signal.SIGINT)
                return
            except OSError as error:
                logger.warning("the run's lease was not renewed: %s", error)


def _stopped(error: StoreError) -> RunStopped:
    return RunStopped(f"{error}. What is complete is kept; start the same command again to go on")
