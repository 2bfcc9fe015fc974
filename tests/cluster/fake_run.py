"""A run of no processes: a system that plays and learns nothing, but leaves the files that a real one leaves."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.console import Console

from cluster.controller import Controller
from cluster.display.run_display import RunDisplay
from cluster.milestones.distilling import Example, distil_all
from cluster.monitors.monitor import Monitors
from cluster.recipe.recipe import Recipe, build_recipe
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.ledger import LedgerFile
from cluster.run_folder.manifest import RunManifest, read_header
from cluster.run_folder.named_data import start_tokenizer, take_data
from cluster.run_folder.stage_results import (
    FirstStatesOpened,
    MilestonesWritten,
    Published,
    TaskMilestones,
)
from cluster.task_sets import TaskSets
from judges.llm.interface import LanguageModel
from judges.of_milestones.distillation import Distilled
from learner.algorithms import resolve
from learner.metrics import ActorUpdate, CloneUpdate, CriticMetrics, CriticsUpdate
from policy.published_weights import PublishedWeights
from records import failure_codes as codes
from records.episodes import Milestone, Source, Task
from records.failures import Failure
from replay.buffer import ReplayBuffer
from replay.first_states import FirstState, read_first_states, write_first_states
from replay.perplexity import Kept, ScoredEpisode
from rollout_workers.leases import EpisodeLedger, Journal
from rollout_workers.results import RolloutResult
from rollout_workers.spec import EpisodeSpec
from tests.cluster.made_episodes import result, store
from tests.cluster.made_results import actor_update, critic_metrics, every_stage
from tests.judges.of_milestones.scripted_model import ScriptedModel

RAW: dict[str, Any] = {
    "run": {
        "phases": 2,
        "training_tasks": 30,
        "environment": "embedded",
        "evaluation": {"tasks_per_split": 3},
    },
    "monitors": {"metrics_log": {}},
    "warm_start": {"demonstrations": 4, "potential_demonstrations": 3, "value_demonstrations": 2},
    "curriculum": {"tasks_per_phase": 6},
}
ORDER = every_stage(2)


class Killed(BaseException):
    """The driver's end at some moment."""


class FakeLearner:
    """Learns nothing and says so; finds every state neither easy nor hard.

    It has an index of the episodes of its own, as a learner's process does: ``read`` has the shard of each that it was
    last trained on.
    """

    def __init__(self, note: Callable[..., None], folders: RunFolders) -> None:
        self._note = note
        self._folders = folders
        self._buffer = ReplayBuffer(folders.episodes)
        self.read: dict[str, str] = {}
        self.held: tuple[str, ...] = ()
        self.kept: bool | None = None
        self.value: Callable[[str], float] = lambda task_id: 0.5

    def record(self, files: dict[str, int]) -> None:
        self._buffer.record(files)

    def bring(self, shards: Iterable[str]) -> None:
        """Nothing is to be brought where all see one folder."""

    def clone(self, episode_ids: Sequence[str]) -> CloneUpdate:
        self._note("clone", episode_ids)
        return CloneUpdate(loss=1.0, updates=1, epochs=1.0, seconds=0.0)

    def pretrain(self, critic: str, episode_ids: Sequence[str]) -> CriticMetrics:
        self._note("pretrain", critic, episode_ids)
        return critic_metrics(1.0)

    def take_critics(self) -> tuple[str, ...]:
        return self.held

    def score(self, episode_ids: Sequence[str]) -> list[ScoredEpisode]:
        self._note("score", episode_ids)
        surprise = np.log(np.array([0.7], dtype=np.float32))
        return [ScoredEpisode(episode_id, [surprise]) for episode_id in episode_ids]

    def update_critics(self, fresh: list[str], earlier: list[str], phase: int, seed: int) -> CriticsUpdate:
        self._note("update_critics", fresh, earlier, phase, seed)
        self._read([*fresh, *earlier])
        return CriticsUpdate({"value": critic_metrics(0.5), "potential": critic_metrics(None)}, seconds={})

    def update_actor(self, fresh: list[str], replayed: list[Kept], phase: int, seed: int) -> ActorUpdate:
        self._note("update_actor", fresh, replayed, phase, seed)
        self._read([*fresh, *(kept.episode_id for kept in replayed)])
        return actor_update(phase, len(fresh), len(replayed))

    def _read(self, episode_ids: Sequence[str]) -> None:
        self._buffer.refresh()
        self.read |= {episode_id: self._buffer.entry(episode_id).shard.name for episode_id in episode_ids}

    def ask_first(self, critic: str, episode_ids: Sequence[str], state_files: Sequence[str]) -> dict[str, float]:
        self._note("ask_first", critic, episode_ids, state_files)
        folder = self._folders.episodes
        buffer = ReplayBuffer(folder)
        tasks = {state.task_id for name in state_files for state in read_first_states(folder / name)}
        tasks |= {buffer.entry(episode_id).task_id for episode_id in episode_ids}
        return {task_id: self.value(task_id) for task_id in sorted(tasks)}

    def save(self, name: str) -> None:
        self._note("checkpoint", name)
        self._folders.checkpoint(name).mkdir(parents=True, exist_ok=True)
        (self._folders.checkpoint(name) / "actor.safetensors").write_text(name)

    def load(self, name: str) -> None:
        assert self._folders.checkpoint(name).is_dir(), f"no checkpoint {name}"
        self._note("restore", name)

    def export(self, *, critics: str) -> None:
        self._note("export")
        self.kept = critics


class FakeSystem:
    """Plays about every other episode well, and remembers what it was asked for; ``fate`` may end it at any request.

    Another ``luck`` trains other weights, which succeed at other tasks.
    """

    clones = True

    def __init__(self, recipe: Recipe, out: Path, fate: Callable[[tuple[Any, ...]], None]) -> None:
        self.folders = RunFolders(out)
        self.algorithm = resolve(recipe.learner)
        self.judges = recipe.judges_of_run
        self.asked: list[tuple[Any, ...]] = []
        self.specs: list[EpisodeSpec] = []
        self.loses: Callable[[EpisodeSpec], bool] = lambda spec: False
        self.luck = ""
        self.writes: Callable[[Task], bool] = lambda task: True
        self.opens: Callable[[Task], bool] = lambda task: True
        self.learner = FakeLearner(self.note, self.folders)
        self.version: int | None = None
        self.plays_ahead: Callable[[EpisodeSpec], bool] = lambda spec: True
        self.model: LanguageModel = ScriptedModel({"milestones": ["Answer done"]})
        self._fate = fate
        self._recipe = recipe

    def take_data(self) -> tuple[str, ...]:
        if not self._recipe.warm_start.data:
            return ()
        self.note("take_data")
        record = read_header(self.folders.out)["data"]
        return take_data(self._recipe, record, self.folders.episodes, start_tokenizer(self._recipe))

    def note(self, *what: Any) -> None:
        self._fate(what)
        self.asked.append(what)

    def publish(self, version: int) -> Published:
        self.note("publish", version)
        path = self.folders.weights / f"actor-{version:06d}.safetensors"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"weights {version}{self.luck}")
        checksum = sha256(path.read_bytes()).hexdigest()
        place = path.relative_to(self.folders.out).as_posix()
        self.version = version
        return Published(PublishedWeights(version, checksum, place), ("server-0",), {}, {}, seconds=0.0)

    @property
    def players(self) -> FakeSystem:
        """What plays; here all is one."""
        return self

    rollouts = players

    def rest(self) -> None:
        """Keep all workers."""

    def retire(self, environment: str) -> None:
        self.note("retire", environment)

    def write_milestones(self, tasks: Sequence[Task]) -> MilestonesWritten:
        self.note("write_milestones", [task.task_id for task in tasks])
        written = {task.task_id for task in tasks if self.writes(task)}
        goal = (Milestone("done", {"url": "*"}), Milestone("quite done", {"url": "*"}))
        return MilestonesWritten(
            {name: TaskMilestones(goal, "fake", "milestones/1") for name in sorted(written)},
            {task.task_id: "judge/judge_nonsense: no" for task in tasks if task.task_id not in written},
            0.5,
        )

    def distil_milestones(self, examples: Sequence[Example]) -> tuple[dict[str, Distilled], dict[str, str]]:
        self.note("distil_milestones", [one.of for one in examples])
        return distil_all(examples, self.model, at_once=2)

    def open_first_states(self, tasks: Sequence[Task], display: RunDisplay) -> FirstStatesOpened:
        self.note("open_first_states", [task.task_id for task in tasks])
        prompt = np.array([1, 2, 3], dtype=np.int32)
        states = [FirstState(task.task_id, prompt) for task in tasks if self.opens(task)]
        names = (write_first_states(self.folders.episodes, states).name,) if states else ()
        absent = {task.task_id: "task/unknown_site: no" for task in tasks if not self.opens(task)}
        return FirstStatesOpened(names, len(states), absent)

    def play(
        self,
        specs: Sequence[EpisodeSpec],
        buffer: ReplayBuffer,
        display: RunDisplay,
        *,
        environment: str,
        journal: Journal,
    ) -> RolloutResult:
        return self._play(specs, buffer, environment, journal)

    @contextmanager
    def ahead(
        self,
        specs: Sequence[EpisodeSpec],
        buffer: ReplayBuffer,
        display: RunDisplay,
        *,
        environment: str,
        journal: Journal,
    ) -> Iterator[Any]:
        """Play what ``plays_ahead`` at the block's beginning."""
        begun = SimpleNamespace(result=None)
        result = self._play([spec for spec in specs if self.plays_ahead(spec)], buffer, environment, journal)
        yield begun
        begun.result = result

    def _play(
        self, specs: Sequence[EpisodeSpec], buffer: ReplayBuffer, environment: str, journal: Journal
    ) -> RolloutResult:
        buffer.refresh()
        missing = {spec.episode_id: spec for spec in specs if spec.episode_id not in buffer}
        ledger = EpisodeLedger(missing, max_attempts=1, journal=journal)
        while leases := ledger.lease(0, 1):
            spec = missing[leases[0].episode_id]
            if self.loses(spec):
                ledger.fail(leases[0], Failure(codes.BROWSER_CRASHED))
                continue
            self.note("play", environment, spec.source, spec.phase)
            self.specs.append(spec)
            version = -1 if spec.source is Source.DEMONSTRATION or self.version is None else self.version
            outcome = float(zlib.crc32((spec.episode_id + self.luck).encode()) % 2)
            store(self.folders.episodes, [spec], [outcome], version)
            ledger.complete(leases[0])
        return result(len(missing), ledger.failures())

    def moments(self) -> list[tuple[Any, ...]]:
        """What was asked for, in short; the episodes of a stage as one."""
        short = [brief(what) for what in self.asked]
        return [what for i, what in enumerate(short) if not i or short[i - 1] != what]


def brief(what: tuple[Any, ...]) -> tuple[Any, ...]:
    """A request's name with its phase, version or checkpoint."""
    if what[0] == "play":
        return "play", what[2].value, what[3]
    if what[0].startswith("update_"):
        return what[0], what[3]
    return what[:2] if what[0] in ("checkpoint", "restore", "publish", "retire", "pretrain") else what[:1]


def no_fate(what: tuple[Any, ...]) -> None:
    """Nothing happens."""


def at(number: int) -> Callable[[tuple[Any, ...]], None]:
    """The driver ends just before its request of this number."""
    left = iter(range(number, -1, -1))

    def fate(what: tuple[Any, ...]) -> None:
        if next(left) == 0:
            raise Killed

    return fate


@cache
def task_sets(config: str) -> TaskSets:
    return TaskSets(Recipe.model_validate_json(config))


def before(request: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], None]:
    """The driver ends just before this request."""

    def fate(what: tuple[Any, ...]) -> None:
        if brief(what) == request:
            raise Killed

    return fate


class Run:
    """A run folder in which the same command may be started again and again."""

    def __init__(self, out: Path, **sections: dict[str, Any]) -> None:
        merged = {name: {**RAW.get(name, {}), **sections.get(name, {})} for name in {*RAW, *sections}}
        self.out = out
        self.recipe = build_recipe(merged)
        self.output = io.StringIO()

    def start(
        self,
        fate: Callable[[tuple[Any, ...]], None] = no_fate,
        loses: Callable[[EpisodeSpec], bool] = lambda spec: False,
        clones: bool = True,
        luck: str = "",
        writes: Callable[[Task], bool] = lambda task: True,
        plays_ahead: Callable[[EpisodeSpec], bool] = lambda spec: True,
        opens: Callable[[Task], bool] = lambda task: True,
        value: Callable[[str], float] = lambda task_id: 0.5,
        held: tuple[str, ...] = (),
        model: LanguageModel | None = None,
    ) -> FakeSystem:
        self.system = FakeSystem(self.recipe, self.out, fate)
        self.system.plays_ahead = plays_ahead
        self.system.loses, self.system.clones, self.system.luck = loses, clones, luck
        self.system.writes, self.system.opens, self.system.learner.value = writes, opens, value
        self.system.learner.held = held
        self.system.model = model or self.system.model
        display = RunDisplay(self.recipe.run.phases, Console(file=self.output, force_terminal=False))
        tasks = task_sets(self.recipe.model_dump_json())
        manifest = RunManifest.open(self.out, self.recipe)
        start = manifest.note_start(self.recipe)
        with Monitors(self.out, self.recipe.monitors) as monitors, LedgerFile(self.out, start) as ledger:
            parts = (self.recipe, manifest, self.system, tasks, display, monitors, ledger)
            Controller(*parts).run()  # type: ignore[arg-type]
        return self.system

    @property
    def manifest(self) -> RunManifest:
        return RunManifest.read(self.out)
