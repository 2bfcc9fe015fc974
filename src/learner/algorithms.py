"""What an algorithm is: a choice of reward, advantage, policy loss and data (ALGORITHMS section 0).

Owns the registry of recipes. Adding an algorithm adds a row here and, at most, one pure function in
``rewards``, ``advantages`` or ``losses``; the trainer does not know the names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from learner.advantages import ADVANTAGES
from learner.losses import POLICY_LOSSES
from learner.rewards import REWARDS, SHAPED
from learner.settings import LearnerSettings


@dataclass(frozen=True, slots=True)
class DataChoice:
    """Which trajectories the actor learns from.

    ``rollouts``: ``none``, ``successes`` or ``all``. ``replay``: ``none``, ``all`` or ``perplexity`` (the
    caller keeps replayed trajectories within the perplexity band of the current policy before the phase).
    ``instruction_filter``: keep the share of trajectories that went best against their first state's value.
    """

    rollouts: str = "all"
    replay: str = "none"
    instruction_filter: bool = False


DATA: dict[str, DataChoice] = {
    "demonstrations": DataChoice(rollouts="none"),
    "successful_rollouts": DataChoice(rollouts="successes"),
    "successful_rollouts_and_replay": DataChoice(rollouts="successes", replay="all"),
    "rollouts": DataChoice(),
    "rollouts_and_replay": DataChoice(replay="all"),
    "rollouts_and_replay_by_instruction": DataChoice(replay="all", instruction_filter=True),
    "rollouts_and_filtered_replay": DataChoice(replay="perplexity"),
}
"""Choices of data by name."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Four choices by name; ``reward`` and ``advantage`` are None where the policy loss needs none."""

    name: str
    reward: str | None
    advantage: str | None
    policy_loss: str
    data: str

    @property
    def data_choice(self) -> DataChoice:
        """The data choice behind the name ``data``."""
        return DATA[self.data]

    @property
    def annotators(self) -> tuple[str, ...]:
        """The critics that a phase trains, in this order, and asks."""
        value = self.advantage is not None or self.data_choice.instruction_filter
        potential = self.advantage is not None and self.reward in SHAPED
        return ("value",) * value + ("potential",) * potential

    @property
    def needs_phases(self) -> bool:
        """Whether the algorithm has phases at all (``sft`` stops after cloning)."""
        return self.data_choice.rollouts != "none"


_FILTERED = "rollouts_and_filtered_replay"
_RECIPES = (
    Algorithm("sft", None, None, "cross_entropy", "demonstrations"),
    Algorithm("filtered_bc", "outcome", None, "cross_entropy", "successful_rollouts"),
    Algorithm("awr", "outcome", "doubly_robust", "awr", "rollouts_and_replay"),
    Algorithm("digirl", "outcome", "value_difference", "hard_filter", "rollouts_and_replay_by_instruction"),
    Algorithm("webrl", "outcome", "doubly_robust", "squared_regression", _FILTERED),
    Algorithm("webrl_released", "outcome", "webrl_released", "webrl_released", _FILTERED),
    Algorithm("mira", "difference", "doubly_robust", "squared_regression", _FILTERED),
    Algorithm("mira_kl", "difference", "doubly_robust", "exp_weighted", _FILTERED),
    Algorithm("mira_no_pc", "outcome", "doubly_robust", "squared_regression", _FILTERED),
    Algorithm("mira_td", "difference", "td", "squared_regression", _FILTERED),
)
ALGORITHMS: dict[str, Algorithm] = {recipe.name: recipe for recipe in _RECIPES}
"""Recipes by name."""


def resolve(settings: LearnerSettings) -> Algorithm:
    """Return the recipe that ``settings`` name, with their explicit choices put in.

    Raises:
        ValueError: an unknown name; the message lists the known ones.
    """
    _known("algorithm", settings.algorithm, ALGORITHMS)
    chosen = ALGORITHMS[settings.algorithm]
    registries: dict[str, Iterable[str]] = {
        "reward": REWARDS,
        "advantage": ADVANTAGES,
        "policy_loss": POLICY_LOSSES,
        "data": DATA,
    }
    explicit: dict[str, str] = {}
    for choice, registry in registries.items():
        name = getattr(settings, choice)
        if name is not None:
            _known(choice, name, registry)
            explicit[choice] = name
    algorithm = replace(chosen, **explicit)
    if POLICY_LOSSES[algorithm.policy_loss].needs_advantage and (algorithm.advantage is None or not algorithm.reward):
        raise ValueError(
            f"policy loss {algorithm.policy_loss!r} needs an advantage and a reward, found advantage="
            f"{algorithm.advantage!r} and reward={algorithm.reward!r}: set both in the learner's settings"
        )
    return algorithm


def _known(choice: str, name: str, registry: Iterable[str]) -> None:
    if name not in set(registry):
        raise ValueError(f"unknown {choice} {name!r}: choose one of {', '.join(sorted(registry))}")
