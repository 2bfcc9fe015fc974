"""Which episodes may be sent now: between the ledger of episodes and the admission of their environment.

Owns ``Gate``, which lives as long as its pool. Invariants: an episode whose grant is not there yet keeps no other
waiting; a grant is given back once: with the answer, at once where the episode was not sent, or as lost with its
worker; an episode of a run that was stopped keeps its grant until then. Must not import ray or asyncio.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from environments.admission import Admission
from environments.environment import Grant
from records.episodes import Task
from records.failures import Failure
from rollout_workers.leases import Lease


class Gate:
    """Asks ``admission`` for episodes; where there is none, lets all of them through in order."""

    def __init__(self, admission: Admission | None) -> None:
        self._admission = admission
        self._asked: set[str] = set()
        self._held: dict[tuple[str, Lease], Grant] = {}

    @property
    def asks(self) -> bool:
        """Whether episodes need a grant."""
        return self._admission is not None

    def admit(self, run: str, tasks: Iterable[tuple[str, Task]], most: int) -> Mapping[str, Grant | Failure | None]:
        """Return what becomes of the episodes of ``run`` that wait, given as ids and tasks in their order.

        At most ``most`` may be sent, with their grant (None where they need none); failures are beside them.
        """
        if self._admission is None:
            return {episode_id: None for episode_id, _ in islice(tasks, most)}
        decided = dict(self._admission.decided(most))
        for episode_id, task in tasks:
            request = f"{run}/{episode_id}"
            if len(decided) >= most:
                break
            if request not in self._asked:
                self._asked.add(request)
                self._admission.ask(request, task)
                decided |= self._admission.decided(most - len(decided))
        self._asked -= decided.keys()
        return {request.removeprefix(f"{run}/"): what for request, what in decided.items()}

    def sent(self, run: str, lease: Lease, grant: Grant | None) -> None:
        """Note that an episode went out with its grant."""
        if grant is not None:
            self._held[run, lease] = grant

    def keep(self, grant: Grant | None) -> None:
        """Give back the grant of an episode that was not sent."""
        if grant is not None and self._admission is not None:
            self._admission.release(grant)

    def answered(self, run: str, lease: Lease, grant: Grant | None) -> None:
        """Give back the grant that came with an answer, and what its episode noted in it."""
        held = self._held.pop((run, lease), None)
        if held is not None and self._admission is not None:
            self._admission.release(grant or held, lost=grant is None)

    def lost(self, worker: int | None = None) -> None:
        """Give back the grants of a worker that is gone (None: of all); nobody knows what its episodes did."""
        for key in [key for key in self._held if worker in (None, key[1].holder)]:
            grant = self._held.pop(key)
            if self._admission is not None:
                self._admission.release(grant, lost=True)

    def leave(self) -> None:
        """Take back what still waits, because its run has ended."""
        for request in self._asked:
            if self._admission is not None:
                self._admission.withdraw(request)
        self._asked.clear()
