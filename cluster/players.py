"""What plays episodes with a policy: the policy's servers, the judges, the rollout workers, a watch over Ray's head.

Owns their start, their end and the publication of weights to the servers. Invariants: whatever was started is stopped,
in reverse order; weights are served only after every accepted server has shown their version, checksum and
log-probabilities.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from types import TracebackType

import ray

from cluster.errors import ProcessLost, RunStopped
from cluster.head_watch import HeadWatch
from cluster.judging import judging
from cluster.node_watch import NodeWatch
from cluster.placement import demands
from cluster.recipe.recipe import Recipe
from cluster.rollouts import Rollouts
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.stage_results import Published
from cluster.task_sets import TaskSets
from policy.backend import Serving, backend_of
from policy.data_planes import DataPlane, by_file
from policy.formats import get_format
from policy.publication import Ids, Probe, Publication, WeightServer, probe_limits, publish
from policy.published_weights import PublishedWeights, put_in_store, write_published
from policy.tokenizer import TextTokenizer
from records.roles import Role
from records.stores.working_copy import local_path
from telemetry import meter, table

logger = logging.getLogger(__name__)


class Players:
    """Context manager over the servers of ``model`` (a policy folder) and the workers that ask them.

    Published weights come to the servers by ``plane``.
    """

    def __init__(
        self,
        recipe: Recipe,
        folders: RunFolders,
        tasks: TaskSets,
        model: str,
        nodes: NodeWatch,
        plane: DataPlane = by_file,
    ) -> None:
        self._plane = plane
        self._nodes = nodes
        self._recipe = recipe
        self._folders = folders
        self._tasks = tasks
        self._model = model
        self._stack = ExitStack()
        self._proven = False

    def __enter__(self) -> Players:
        """Start the watch, the servers and what episodes are played on."""
        settings, run = self._recipe.policy, f"{self._recipe.run.name}-{secrets.token_hex(3)}"
        backend, options = backend_of(settings)
        serving = Serving(
            settings,
            self._folders.address(self._model),
            self._folders.address(self._folders.current_weights),
            run,
            self._folders.logs.resolve(),
            self._recipe.learner.adapters.rank,
            demands(self._recipe)[Role.SERVER].resources,
            self._plane,
            mark="" if settings.weights_store else self._folders.mark,
            joined=bool(self._recipe.run.resources.address),
        )
        with ExitStack() as started:
            head = ray.get_runtime_context().gcs_address
            self._head = started.enter_context(HeadWatch(head, self._recipe.run.head_timeout_s))
            started.push(self._explain_lost_head)
            self._policy = started.enter_context(backend.serve(serving, options))
            self._servers = backend.processes(options)
            if self._servers.count:
                self._nodes.settled(Role.SERVER)
            self.judges = started.enter_context(judging(self._recipe, self._folders))
            rollouts = Rollouts(
                self._recipe,
                self._folders,
                self.judges,
                policy=self._policy.source,
                nodes=self._nodes,
                tokenizer=self._folders.address(self._model),
            )
            self.rollouts = started.enter_context(rollouts)
            self._stack = started.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything that was started. Raise ``ProcessLost`` where Ray's head was lost."""
        self._head.stop()
        self._stack.__exit__(kind, error, trace)

    @cached_property
    def probes(self) -> tuple[tuple[Ids, Ids], ...]:
        """Prompts and actions on which servers are compared with whoever has the weights: a short one, a full one."""
        short, full = "@ Probe\nlink Home 0\nbutton Search 1", self._recipe.policy.max_prompt_tokens
        return self._probe(short), self._probe("\n".join([short, *(f"link Item {i} {i}" for i in range(2, full))]))

    def _probe(self, observation: str) -> tuple[Ids, Ids]:
        tokenizer, settings = TextTokenizer.load(self._model), self._recipe.policy
        prompt_format = get_format(settings.prompt_format, thinking=settings.thinking)
        prompt = prompt_format.build(
            tokenizer,
            intent=self._tasks.training.tasks[0].intent,
            history=(),
            observation=observation,
            feedback=None,
            max_prompt_tokens=settings.max_prompt_tokens,
        )
        action = prompt_format.action_ids(tokenizer, '# Element: Home\ndo(action="Click", element="0")')
        # A server that scores may have to add a token of its own.
        return tuple(prompt.ids.tolist()), tuple(action[: settings.max_new_tokens - 1])

    def publish(self, weights: PublishedWeights, probes: Sequence[Probe]) -> Published:
        """Bring every server to these weights, whose own answers are ``probes``; replace the servers that miss.

        Raises:
            ProcessLost: no server came up, or none accepted the weights.
            RunStopped: none has been up, and each of them was told what cannot be served.
            StoreError: ``policy.weights_store`` does not take them.
        """
        settings, version = self._recipe.policy, weights.version
        place = local_path(weights.path).relative_to(self._folders.out.resolve()).as_posix()
        if settings.weights_store:
            weights = put_in_store(weights, settings.weights_store)
        # Written first: whichever server restarts from now on, however this goes on, comes back with these weights.
        if self._folders.stored is None:
            write_published(weights, self._folders.current_weights)
        else:
            self._folders.stored.announce(weights)
        if self._servers.count:
            self._nodes.require_one(Role.SERVER, self._servers.start_s + settings.publish_timeout_s)
        publication = self._handed_over(weights, probes)
        self._proven = self._proven or bool(publication.accepted)
        if not self._proven and publication.refused and set(publication.refused) == set(publication.quarantined):
            # Whoever is told the same once more refuses it once more.
            reasons = "; ".join(sorted(set(publication.quarantined.values())))
            raise RunStopped(f"no policy server can serve what the recipe's policy section asks for: {reasons}")
        if not publication.accepted:
            raise ProcessLost(
                f"no policy server took version {version}: {publication.quarantined}; see the servers' logs"
            )
        self.rollouts.version = version
        meter.record(table.PUBLISHED_VERSION, version)
        for name, gap in publication.probe_gaps.items():
            meter.record(table.PROBE_GAP, gap, server=name)
        for name, reason in publication.quarantined.items():
            logger.warning("policy server %s missed version %d and is replaced: %s", name, version, reason)
            self._policy.replace(name)
        return Published(
            weights=replace(weights, path=place),
            accepted=publication.accepted,
            quarantined=publication.quarantined,
            probe_gaps={name: gap for name, gap in publication.probe_gaps.items() if math.isfinite(gap)},
            seconds=publication.seconds,
        )

    def _handed_over(self, weights: PublishedWeights, probes: Sequence[Probe]) -> Publication:
        """Publish to the servers that are up; one that comes up meanwhile may have read what was published before."""
        settings = self._recipe.policy
        limits, limit_s = probe_limits(settings, self._recipe.learner.computes_in), settings.publish_timeout_s

        def to(servers: Sequence[WeightServer]) -> Publication:
            return asyncio.run(publish(servers, weights, probes, limits=limits, timeout_s=limit_s, plane=self._plane))

        up = self._up()
        found = to(up)
        late = [server for server in self._up() if server.name not in {one.name for one in up}]
        return found.with_later(to(late)) if late else found

    def _up(self) -> list[WeightServer]:
        """Return the servers that have come up, those that others run included."""
        servers = self._policy.weight_servers()
        starting = self._nodes.starting([server.name for server in servers])
        return [server for server in servers if server.name not in starting]

    def _explain_lost_head(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say why everything fails, or why the main thread was interrupted, when Ray's head is lost."""
        if error is None or not self._without_head(error):
            return
        raise ProcessLost(
            f"Ray's head does not answer (run.head_timeout_s is {self._recipe.run.head_timeout_s:g} s); if it was "
            "not restarted on purpose, look at its log and its machine's memory; finished episodes are kept"
        ) from error

    def _without_head(self, error: BaseException) -> bool:
        """Whether an error came with the loss of Ray's head; an interruption by the user takes the head along."""
        return self._head.lost or not (isinstance(error, KeyboardInterrupt) or self._head.answers())
