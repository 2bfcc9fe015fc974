"""A small world for tests of workers and pools, importable by name in a Ray worker's process.

A task's parameter ``fault`` makes its first ``times`` attempts go wrong in the named way. Attempts are
counted in files, because the process that plays them may die.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from environments.environment import Grant
from environments.kinds import EnvironmentKind, Service
from environments.task_sources import ListedTasks
from environments.webarena.leases.units import SiteLease
from policy.client import Completion, PolicySource, Sampling
from policy.formats import get_format
from policy.tokenizer import TextTokenizer
from policy.tokenizer_training import train_tokenizer
from records import failure_codes as codes
from records.deadline import Deadline
from records.environment import Action, Element, Observation, Verdict
from records.episodes import Milestone, Source, Task
from records.failures import EpisodeFailed, Failure, FailureCode, FailureKind
from rollout_workers.results import Completed, EpisodeAnswer
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec, WorkerConfig

CLICK, EXIT = '# Element: Lamp\ndo(action="Click", element="0")', 'exit(message="done")'
HERE = "tests.rollout_workers.fake_world"


@dataclass(frozen=True)
class FakeSettings:
    """Where the world keeps its notes, and the port of a judge for those that ask one."""

    scratch: str
    judge_port: int = 0


class FakeHost:
    """A "browser" that is a sleeping process, detached as Chromium is."""

    def __init__(self, settings: FakeSettings) -> None:
        self._scratch = Path(settings.scratch)
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        if (self._scratch / "no_browser").exists():
            raise EpisodeFailed(
                Failure(FailureCode("browser_start_failed", FailureKind.INFRA), "no browser is installed here")
            )
        self._process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with (self._scratch / "browsers").open("a") as file:
            file.write(f"{self._process.pid}\n")

    async def environment(self) -> FakeEnvironment:
        assert self._process is not None
        return FakeEnvironment(self._scratch, self._process)

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(5)


class FakeEnvironment:
    """Two pages with one link; misbehaves as its task says."""

    def __init__(self, scratch: Path, browser: subprocess.Popen[bytes]) -> None:
        self._scratch = scratch
        self._browser = browser
        self._fault = ""
        self._delay_s = 0.0

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        if isinstance(grant, SiteLease):
            grant.wrote.update(grant.units)
        attempts = self._scratch / f"attempts-{episode_id}"
        with attempts.open("a") as file:
            file.write("x")
        first = len(attempts.read_text()) <= int(task.parameters.get("times", 1))
        self._fault = str(task.parameters.get("fault", "")) if first else ""
        self._delay_s = float(task.parameters.get("delay_s", 0.0))
        return page("__SHOP__/")

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        await asyncio.sleep(self._delay_s)
        if self._fault == "die":
            os._exit(1)
        if self._fault == "freeze":
            time.sleep(1000)  # blocks the event loop, as a bug might
        if self._fault == "stall":
            time.sleep(3)
        if self._fault == "together":
            await self._until_two_processes_play()
        if self._fault == "bug":
            raise ZeroDivisionError("a bug in an environment")
        if self._fault == "kill_browser":
            self._browser.kill()
            self._browser.wait(5)
        if self._browser.poll() is not None:
            raise EpisodeFailed(Failure(codes.BROWSER_CRASHED, "the browser is gone"))
        if self._fault in ("infra", "task", "judge"):
            raise EpisodeFailed(Failure(FailureCode("as_asked", FailureKind(self._fault)), "the task says so"))
        return page("__SHOP__/lamp")

    async def _until_two_processes_play(self) -> None:
        (self._scratch / f"player-{os.getpid()}").touch()
        async with asyncio.timeout(200):
            while len(list(self._scratch.glob("player-*"))) < 2:
                await asyncio.sleep(0.01)

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict:
        return Verdict(1.0 if answer == "done" else 0.0)

    async def screenshot(self, deadline: Deadline | None = None) -> bytes | None:
        return b"png"

    async def close(self) -> None:
        return None


def page(url: str) -> Observation:
    return Observation("@ Shop\nlink Lamp 0", url, "Shop", "Lamp", (Element(0, "link", "Lamp"),))


WORLD = EnvironmentKind(
    settings=FakeSettings,
    tasks=lambda settings: ListedTasks([]),
    host=lambda settings, connection, browser, judge: FakeHost(settings),
)
"""What ``WorkerConfig.environment`` names."""


@contextmanager
def process_of_service(settings: FakeSettings) -> Iterator[Service[str]]:
    """A service that is known by its process."""
    scratch = Path(settings.scratch)
    if (scratch / "no_service").exists():
        raise OSError("no sites here")
    with (scratch / "services").open("a") as file:
        file.write(f"{os.getpid()}\n")
    yield Service(str(os.getpid()))


def connected(settings: FakeSettings, connection: str) -> FakeHost:
    """A host that notes what it was connected with."""
    with (Path(settings.scratch) / "connections").open("a") as file:
        file.write(f"{connection}\n")
    return FakeHost(settings)


ON_EACH_NODE = EnvironmentKind(
    settings=FakeSettings,
    tasks=lambda settings: ListedTasks([]),
    service=process_of_service,
    host=lambda settings, connection, browser, judge: connected(settings, connection),
    each_node=True,
)
"""The same with a service on each node."""


class FakePolicy:
    """Clicks at the first prompt of an episode and exits at the second."""

    def __init__(self, tokenizer: str) -> None:
        self._tokenizer = TextTokenizer.load(tokenizer)

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, *, episode: str) -> Completion:
        text = EXIT if "# Element: Lamp" in self._tokenizer.decode(list(prompt_ids)) else CLICK
        ids = get_format("waymark").action_ids(self._tokenizer, text)
        return Completion(tuple(ids), tuple(-0.5 for _ in ids), version=3, finish_reason="stop")


def policy(tokenizer: str) -> FakePolicy:
    """The factory that ``PolicySource.factory`` names."""
    return FakePolicy(tokenizer)


def spec(
    index: int, fault: str = "", *, times: int = 1, delay_s: float = 0.0, screenshots: bool = False
) -> EpisodeSpec:
    """One episode, whose task misbehaves as asked."""
    task = Task(
        task_id=f"t{index}",
        sites=("shop",),
        intent="Open the lamp",
        start_url="__SHOP__/",
        evaluation={},
        template="shop.open",
        parameters={"fault": fault, "times": times, "delay_s": delay_s},
        max_steps=4,
        milestones=(Milestone("on the lamp's page", {"url": "__SHOP__/lamp"}),),
    )
    return EpisodeSpec(f"e{index}", task, Source.ROLLOUT, phase=0, seed=index, screenshots=screenshots)


def config(folder: Path, settings: RolloutSettings, environment: str = f"{HERE}:WORLD") -> WorkerConfig:
    """A worker's configuration with everything under ``folder``."""
    tokenizer = folder / "tokenizer"
    if not tokenizer.exists():
        train_tokenizer(["Task: Open the lamp", "@ Shop\nlink Lamp 0", CLICK, EXIT] * 4, 600, tokenizer)
    (folder / "scratch").mkdir(exist_ok=True)
    return WorkerConfig(
        shard_dir=str(folder / "shards"),
        tokenizer=str(tokenizer),
        environment=environment,
        policy=PolicySource(f"{HERE}:policy", {"tokenizer": str(tokenizer)}),
        settings=settings,
        screenshot_dir=str(folder / "screenshots"),
        options=FakeSettings(str(folder / "scratch")),
    )


def completed(answer: EpisodeAnswer) -> Completed:
    """The judged episode of an answer."""
    assert isinstance(answer.end, Completed), answer.end
    return answer.end


def failed(answer: EpisodeAnswer) -> Failure:
    """Why an answer has no judged episode."""
    assert isinstance(answer.end, Failure), answer.end
    return answer.end


def browsers(folder: Path) -> list[int]:
    """The process ids of all "browsers" that were started."""
    return [int(line) for line in (folder / "scratch" / "browsers").read_text().split()]
