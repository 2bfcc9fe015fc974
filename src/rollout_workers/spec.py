"""What is sent to a rollout worker: one episode to play, and what the worker needs to play any.

Owns ``EpisodeSpec`` and ``WorkerConfig``. Invariants: everything here can be
pickled (Ray actor handles included) and is fixed before an episode starts; an episode's randomness
comes from its spec alone, never from the worker or the moment that plays it. Must not import ray.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from environments.browser.settings import BrowserSettings
from environments.environment import Grant
from judges.kinds import Judges
from policy.client import PolicySource
from policy.settings import PolicySettings
from records.episodes import Source, Task
from rollout_workers.settings import RolloutSettings
from sites.quality import Quality


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """One episode to play.

    ``episode_id`` is unique in a run and, for repeatable runs, the same in each of them: with ``seed`` it
    determines every sampling seed. ``temperature`` 0 is greedy. A ``DEMONSTRATION`` is played by the task's expert,
    imperfectly as ``quality`` says (None: flawlessly); other sources ask the policy, whose weights must be of
    ``version`` where that is given. ``screenshots`` keeps a picture of every page. ``group`` names the episodes
    that are sampled for one task. ``grant`` is what the driver admitted this attempt with, where its environment
    has an admission.
    """

    episode_id: str
    task: Task
    source: Source
    phase: int
    seed: int
    temperature: float = 1.0
    screenshots: bool = False
    quality: Quality | None = None
    version: int | None = None
    group: str = ""
    grant: Grant | None = None

    def step_seed(self, index: int, again: int = 0) -> int:
        """Return the sampling seed of one step: a 62-bit hash of seed, episode and step.

        ``again`` counts how often the step's action was asked for before.
        """
        asked = f"{self.seed}/{self.episode_id}/{index}" + (f"/{again}" if again else "")
        digest = hashlib.blake2b(asked.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 2


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """All that a rollout worker is built from.

    ``environment`` names a kind of environment (``environments.kinds.KINDS``), ``options`` are its settings or what
    becomes them, and ``connection`` leads to what its service runs; without one, a kind whose service runs on each node
    has it started there. ``judges`` are the judges of the run, of which
    ``settings`` names those that are asked. ``tokenizer`` is a policy folder. ``policy`` may be None for workers
    that play demonstrations only; ``policy_settings`` gives the prompt format and the limits in tokens. Shards go under
    ``shard_dir``; screenshots under ``screenshot_dir``, states of planned episodes under ``plan_dir``, or nowhere where
    these are empty. ``run`` is part of the actors' names; ``metrics`` is the run that they record for, empty for none.
    A worker declares ``memory_mb`` to Ray, in MiB, and custom ``resources``. It plays only where it sees the ``mark``
    of the run folder (``records.folder_mark``); an empty one asks for nothing.
    """

    shard_dir: str
    tokenizer: str
    environment: str = "embedded"
    policy: PolicySource | None = None
    policy_settings: PolicySettings = field(default_factory=PolicySettings)
    settings: RolloutSettings = field(default_factory=RolloutSettings)
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    options: object = field(default_factory=dict)
    connection: object = None
    judges: Judges = field(default_factory=Judges)
    screenshot_dir: str = ""
    plan_dir: str = ""
    run: str = ""
    metrics: str = ""
    memory_mb: int = 0
    resources: Mapping[str, float] = field(default_factory=dict)
    mark: str = ""
