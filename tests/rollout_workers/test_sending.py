"""What the driver's loop does before and while it sends episodes; the workers are stand-ins."""

from __future__ import annotations

from collections import Counter

from records import failure_codes as codes
from records.failures import Failure
from rollout_workers.gate import Gate
from rollout_workers.leases import Event, Lease
from rollout_workers.nodes import STEADY
from rollout_workers.pool import _Run, tell_nobody
from rollout_workers.results import Completed, EpisodeAnswer, EpisodeSummary
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from rollout_workers.worker_group import Answered
from tests.cluster.made_episodes import spec


class Group:
    """Workers that answer at once, but for those in ``full``, which take nothing in so many turns."""

    losses = orphans_killed = 0
    loop_lag_s = 0.0
    capacity = 4

    def __init__(self, told: list[str], workers: int, full: dict[int, int] | None = None) -> None:
        self.told, self.workers, self.full = told, range(workers), full or {}
        self.sent: list[tuple[str, Lease]] = []

    def ready(self) -> list[int]:
        return list(self.workers)

    def leaving(self) -> dict[int, float]:
        return {}

    def tend(self) -> list[Answered]:
        self.full = {worker: turns - 1 for worker, turns in self.full.items() if turns}
        return []

    def poll(self, timeout_s: float) -> list[Answered]:
        summary = EpisodeSummary(1.0, 1, 0, "worker", 1.0, 0.1, 0.5, 0.3, 0.1)
        answers = [Answered(run, EpisodeAnswer(lease, Completed(summary, "a.arrow"))) for run, lease in self.sent]
        self.sent.clear()
        return answers

    def send(self, worker: int, run: str, lease: Lease, spec: EpisodeSpec) -> bool:
        if worker in self.full:
            return False
        self.told.append("send")
        self.sent.append((run, lease))
        return True


class Journal:
    """Tells events and when they are forced to the disk, in order with what is sent."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.failed: Counter[tuple[Event, str]] = Counter()

    def __call__(self, event: Event, lease: Lease, failure: Failure | None) -> None:
        self.told.append(event.value)
        if failure is not None:
            self.failed[event, f"{failure.code}"] += 1

    def force(self) -> None:
        self.told.append("force")


def run_of(episodes: int, group: Group, journal: Journal) -> _Run:
    specs = [spec(number) for number in range(episodes)]
    settings = RolloutSettings(retry_delay_s=0.0)
    return _Run("run", specs, group, Gate(None), STEADY, settings, tell_nobody, None, journal)  # type: ignore[arg-type]


def test_leases_are_durable_once_a_turn_before_any_of_them_is_sent() -> None:
    journal = Journal()
    run = run_of(12, Group(journal.told, workers=2), journal)
    run.play()
    first = ["lease"] * 8 + ["force"] + ["send"] * 8
    second = ["complete"] * 8 + ["lease"] * 4 + ["force"] + ["send"] * 4
    assert journal.told == [*first, *second, *["complete"] * 4], "a turn that sends nothing forces nothing"


def test_a_worker_that_refuses_costs_one_attempt_and_the_others_go_on() -> None:
    journal = Journal()
    run = run_of(8, Group(journal.told, workers=2, full={1: 1}), journal)
    run.play()
    played = run.played()
    assert (len(played.located), played.failures) == (8, {})
    refused = f"{codes.NOT_SENT}"
    assert journal.failed == {(Event.REQUEUE, refused): 4}, "one that failed, three that were handed back"
    assert played.incidents == {refused: 1}
