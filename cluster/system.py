"""The processes of a run: sites, learner, policy servers and rollout workers, and how to ask them.

Owns their start, their end and every call to them. Invariants: whatever was started is stopped, in
reverse order; a call that may wait has a limit; weights are served only after every accepted server
has shown their version, checksum and log-probabilities.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType

import ray

from cluster.display.progress import Progress
from cluster.errors import ProcessLost, RecipeError
from cluster.head_watch import HeadWatch
from cluster.learner_client import start_learner
from cluster.recipe.recipe import Recipe
from cluster.rollouts import Rollouts
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.policy_folder import build_policy, check_policy, copy_checkpoint
from cluster.run_folder.stage_results import Published
from cluster.task_sets import TaskSets
from learner.algorithms import Algorithm, resolve
from policy.backend import PolicyService, Serving, backend_of
from policy.formats import get_format
from policy.manifest import write_manifest
from policy.publication import Probe, publish
from policy.tokenizer import TextTokenizer
from replay.buffer import ReplayBuffer
from rollout_workers.leases import Journal, no_journal
from rollout_workers.report import RolloutReport
from rollout_workers.spec import EpisodeSpec

logger = logging.getLogger(__name__)


class System:
    """Context manager over all processes of one run; needs a running Ray."""

    def __init__(self, recipe: Recipe, folders: RunFolders, tasks: TaskSets) -> None:
        self.recipe = recipe
        self.folders = folders
        self.algorithm: Algorithm = resolve(recipe.learner)
        if recipe.run.phases and not self.algorithm.needs_phases:
            raise RecipeError(
                f"learner.algorithm {self.algorithm.name!r} ends with cloning but run.phases is {recipe.run.phases}; "
                "set run.phases to 0, or choose an algorithm that learns from rollouts"
            )
        if recipe.curriculum.value_band and "value" not in self.algorithm.annotators:
            raise RecipeError(
                f"curriculum.value_band needs a value critic, which learner.algorithm {self.algorithm.name!r} has not; "
                "turn it off, or choose an algorithm with an advantage"
            )
        self._tasks = tasks
        self._stack = ExitStack()
        self._run = secrets.token_hex(8)
        self._version: int | None = None

    @property
    def clones(self) -> bool:
        """Whether the warm start is cloned here rather than taken from a checkpoint."""
        return self.recipe.run.from_scratch or not self.recipe.warm_start.checkpoint

    def __enter__(self) -> System:
        """Prepare the policy folder and start the sites, the learner and the servers."""
        self.folders.clear_leftovers()
        with ExitStack() as started:
            self._prepare_policy()
            head = ray.get_runtime_context().gcs_address
            self._head = started.enter_context(HeadWatch(head, self.recipe.run.head_timeout_s))
            started.push(self._explain_lost_head)
            self._policy = started.enter_context(self._serve())
            self._rollouts = started.enter_context(
                Rollouts(
                    self.recipe,
                    self.folders,
                    policy=self._policy.source,
                    tokenizer=self._model,
                )
            )
            self.learner = start_learner(self.recipe, self._model, self.folders)
            self.learner.ready()
            self._stack = started.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything that was started; Ray ends its actors. Raise ``ProcessLost`` where Ray's head was lost."""
        self._head.stop()
        self._stack.__exit__(kind, error, trace)

    def _explain_lost_head(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say why everything fails, or why the main thread was interrupted, when Ray's head is lost."""
        if error is None or not self._without_head(error):
            return
        raise ProcessLost(
            f"Ray's head does not answer (run.head_timeout_s is {self.recipe.run.head_timeout_s:g} s); if it was "
            "not restarted on purpose, look at its log and its machine's memory; finished episodes are kept"
        ) from error

    def _without_head(self, error: BaseException) -> bool:
        """Whether an error came with the loss of Ray's head; an interruption by the user takes the head along."""
        return self._head.lost or not (isinstance(error, KeyboardInterrupt) or self._head.answers())

    def publish(self, version: int) -> Published:
        """Bring every server to the learner's weights as ``version``; replace the servers that miss.

        Raises:
            ProcessLost: no server accepted the weights.
        """
        settings = self.recipe.policy
        manifest = self.learner.publish(version)
        prompt_ids, action_ids = self._probe
        probe = Probe(prompt_ids, action_ids, tuple(self.learner.probe(prompt_ids, action_ids)))
        # Written first: whichever server restarts from now on, however this goes on, comes back with these weights.
        write_manifest(manifest, self.folders.current_weights)
        servers, limit_s = self._policy.weight_servers(), settings.publish_timeout_s
        report = asyncio.run(publish(servers, manifest, probe, tolerance=settings.probe_tolerance, timeout_s=limit_s))
        if not report.accepted:
            raise ProcessLost(f"no policy server took version {version}: {report.quarantined}; see the servers' logs")
        self._version = version
        for name, reason in report.quarantined.items():
            logger.warning("policy server %s missed version %d and is replaced: %s", name, version, reason)
            self._policy.replace(name)
        place = Path(manifest.path).relative_to(self.folders.out.resolve()).as_posix()
        return Published(
            manifest=replace(manifest, path=place),
            accepted=report.accepted,
            quarantined=report.quarantined,
            probe_gaps={name: gap for name, gap in report.probe_gaps.items() if math.isfinite(gap)},
            seconds=report.seconds,
        )

    def play(
        self,
        specs: Sequence[EpisodeSpec],
        buffer: ReplayBuffer,
        progress: Progress,
        *,
        driver: str,
        journal: Journal = no_journal,
    ) -> RolloutReport:
        """Play episodes with the published weights; see ``cluster.rollouts``."""
        return self._rollouts.play(specs, buffer, progress, driver=driver, version=self._version, journal=journal)

    def retire(self, driver: str) -> None:
        """End the workers of one kind of environment, when no further episode needs them."""
        self._rollouts.retire(driver)

    @property
    def _model(self) -> str:
        """The folder or hub name that models and tokenizers are loaded from."""
        return str(self.folders.policy.resolve()) if self.recipe.policy.model == "tiny" else self.recipe.policy.model

    @cached_property
    def _probe(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A prompt and an action on which learner and servers are compared."""
        tokenizer = TextTokenizer.load(self._model)
        prompt_format = get_format(self.recipe.policy.prompt_format)
        prompt = prompt_format.build(
            tokenizer,
            intent=self._tasks.pool.tasks[0].intent,
            history=(),
            observation="@ Probe\nlink Home 0\nbutton Search 1",
            feedback=None,
            max_prompt_tokens=self.recipe.policy.max_prompt_tokens,
        )
        action = prompt_format.action_ids(tokenizer, '# Element: Home\ndo(action="Click", element="0")')
        return tuple(prompt.ids.tolist()), tuple(action)

    def _prepare_policy(self) -> None:
        if self.recipe.policy.model != "tiny":
            return
        if self.folders.policy.exists():
            check_policy(self.folders.policy)
            return
        if self.clones:
            count = self.recipe.warm_start.tokenizer_demonstrations
            specs = self._tasks.demonstrations("tokenizer", count, flawless=True)
            build_policy(self.recipe, [spec.task for spec in specs], self.folders.policy)
        else:
            copy_checkpoint(self.recipe.checkpoint_path, self.folders.policy)

    def _serve(self) -> AbstractContextManager[PolicyService]:
        """Start the backend that the recipe names; its servers wait for a publication."""
        settings = self.recipe.policy
        backend, options = backend_of(settings)
        return backend.serve(Serving(settings, self._model, self.folders.current_weights.resolve(), self._run), options)
