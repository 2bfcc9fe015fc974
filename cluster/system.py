"""The processes of a training run: the players and the learner.

Owns the policy folder that both start from. Invariants: whatever was started is stopped, in reverse order; the servers
play with nothing but what the learner published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType

from cluster.learner_client import start_learner
from cluster.milestones.distilling import Example, distil_all
from cluster.milestones.writing import nothing_written
from cluster.node_watch import NodeWatch
from cluster.players import Players
from cluster.recipe.recipe import Recipe
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.manifest import read_header
from cluster.run_folder.named_data import require_fitting_data, take_data
from cluster.run_folder.named_model import copy_model
from cluster.run_folder.policy_folder import copy_checkpoint, require_unchanged
from cluster.run_folder.stage_results import MilestonesWritten, Published
from cluster.task_sets import TaskSets
from cluster.tiny_policy import build_policy
from judges.of_milestones.distillation import Distilled
from learner.algorithms import Algorithm, resolve
from learner.headway import Headway
from policy.data_planes import Broadcast, by_file
from policy.publication import Probe
from policy.settings import TINY
from policy.tokenizer import TextTokenizer
from records.episodes import Task


class System:
    """Context manager over all processes of one run; needs a running Ray.

    ``on_headway`` is called with the learner's headway; ``nodes`` knows who waits for a node.
    """

    def __init__(
        self,
        recipe: Recipe,
        folders: RunFolders,
        tasks: TaskSets,
        on_headway: Callable[[Headway], None],
        nodes: NodeWatch,
    ) -> None:
        self.recipe = recipe
        self._nodes = nodes
        self._on_headway = on_headway
        self.folders = folders
        self.algorithm: Algorithm = resolve(recipe.learner)
        self._tasks = tasks
        self._stack = ExitStack()

    @property
    def clones(self) -> bool:
        """Whether demonstrations are cloned before RL."""
        return self.recipe.clones

    def __enter__(self) -> System:
        """Prepare the policy folder and start the learner, then the players: what has no other place comes first."""
        self.folders.clear_leftovers()
        model = self._prepared_policy()
        require_fitting_data(self.recipe, TextTokenizer.load(model))
        if self.folders.stored is not None:
            self.folders.stored.commit()  # processes of other nodes find the policy by the newest snapshot
        with ExitStack() as started:
            self.learner = start_learner(self.recipe, model, self.folders, self._on_headway, self._nodes)
            broadcasts = self.recipe.policy.publication == "broadcast"
            plane = Broadcast(self.learner.sender) if broadcasts else by_file
            players = Players(self.recipe, self.folders, self._tasks, model, self._nodes, plane)
            self.players = started.enter_context(players)
            self.rollouts = self.players.rollouts
            self.learner.ready()
            self._stack = started.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything that was started; Ray ends the learner. Raise ``ProcessLost`` where Ray's head was lost."""
        self._stack.__exit__(kind, error, trace)

    def take_data(self) -> tuple[str, ...]:
        """Make the data that the recipe names the run's own; return the ids of its episodes, none where it names none.

        Raises:
            RunStopped: see ``cluster.run_folder.named_data``.
        """
        record, tokenizer = read_header(self.folders.out)["data"], TextTokenizer.load(self.folders.policy)
        return take_data(self.recipe, record, self.folders.episodes, tokenizer)

    def write_milestones(self, tasks: Sequence[Task]) -> MilestonesWritten:
        """Let the model of ``milestones.model`` write milestones for tasks; say why where there are none."""
        if not self.recipe.milestones.model or not tasks:
            return nothing_written(tasks)
        return self.rollouts.write_milestones(tasks)

    def distil_milestones(self, examples: Sequence[Example]) -> tuple[dict[str, Distilled], dict[str, str]]:
        """Let the model of ``milestones.model`` distil milestones from successes; see ``distil_all``."""
        if not examples:
            return {}, {}
        model = self.players.judges.language_model(self.recipe.milestones.model)
        return distil_all(examples, model, self.recipe.milestones.at_once)

    def publish(self, version: int) -> Published:
        """Bring every server to the learner's weights as ``version``; raise ``ProcessLost`` where none takes them."""
        weights = self.learner.publish(version)
        probes = [
            Probe(prompt, action, tuple(self.learner.probe(prompt, action))) for prompt, action in self.players.probes
        ]
        return self.players.publish(weights, probes)

    def _prepared_policy(self) -> str:
        """Return the folder that models and tokenizers are loaded from; make it if need be."""
        folder, policy = self.folders.policy, self.recipe.policy
        if folder.exists():
            require_unchanged(folder)
        elif policy.model != TINY:
            copy_model(policy, read_header(self.folders.out)["model"], folder)
        elif self.clones and not self.recipe.warm_start.data:
            count = self.recipe.warm_start.tokenizer_demonstrations
            specs = self._tasks.demonstrations("tokenizer", count, flawless=True)
            build_policy(self.recipe, [spec.task for spec in specs], folder)
        else:
            copy_checkpoint(self.recipe.checkpoint_path, folder)
        return str(folder.resolve())
