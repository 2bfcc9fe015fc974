"""What an algorithm is: a reward, an advantage, a policy loss, a choice of data and a reference, each by name.

Owns the names that a recipe may choose from and what each choice asks for. Standard library only, so that a recipe is
checked without torch; the functions are in the registries of the same names: ``rewards.REWARDS``, ``credit.CREDIT``,
``losses.POLICY_LOSSES`` and ``data_choices.MASKS``. The trainer knows no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from learner.settings import LearnerSettings

REWARD_ASKS: dict[str, tuple[str, ...]] = {
    "outcome": (),
    "difference": ("potential",),
    "pbrs": ("potential",),
    "process": (),
    "outcome_steps": (),
    "process_steps": (),
    "admire": (),
}
"""Rewards by name, with the critics whose answers each one uses."""

JUDGED_STEPS = ("process", "process_steps")
"""Rewards that use what a judge says of each step (``Step.reward``)."""

STEP_TOTALS = ("outcome_steps", "process_steps", "admire")
"""Rewards of which each step's is a whole of its own, the outcome in it, for advantages that compare steps."""

REACHED_MILESTONES = ("admire",)
"""Rewards that use which milestones were reached."""

ADVANTAGE_ASKS: dict[str, tuple[str, ...]] = {
    "returns": ("value",),
    "doubly_robust": ("value",),
    "td": ("value",),
    "undiscounted": ("value",),
    "digirl": ("value",),
    "value_difference": ("value",),
    "webrl_released": ("value",),
    "group_relative": (),
    "group_steps": (),
    "group_steps_left_out": (),
}
"""Advantages by name, with the critics whose answers each one uses."""

UNDISCOUNTED = ("undiscounted", "digirl", "value_difference", "webrl_released")
"""Advantages without a discount, for which the value critic's returns have none either."""

STEP_ADVANTAGES = ("group_steps", "group_steps_left_out")
"""Advantages that compare the steps of a group, not its trajectories."""

GROUP_ADVANTAGES = ("group_relative", *STEP_ADVANTAGES)
"""Advantages that compare what was sampled for one task side by side."""


@dataclass(frozen=True, slots=True)
class LossNeeds:
    """Whether a policy loss uses an advantage, compares with a reference policy, and is of the newest policy's samples.

    ``on_policy``: its ratio is to the recorded log-probabilities, and its clipping keeps the policy close to whoever
    sampled, which must be the policy that the phase starts from.
    """

    advantage: bool = True
    reference: bool = False
    on_policy: bool = False


LOSS_NEEDS: dict[str, LossNeeds] = {
    "cross_entropy": LossNeeds(advantage=False),
    "squared_regression": LossNeeds(reference=True),
    "exp_weighted": LossNeeds(),
    "awr": LossNeeds(),
    "hard_filter": LossNeeds(),
    "webrl_released": LossNeeds(reference=True),
    "mgrpo": LossNeeds(reference=True, on_policy=True),
    "clipped_actions": LossNeeds(on_policy=True),
    "clipped_tokens": LossNeeds(on_policy=True),
}
"""Policy losses by name."""


@dataclass(frozen=True, slots=True)
class DataChoice:
    """What a choice of data asks for.

    ``replay``: which stored successes the caller brings to a phase: ``none``, ``all``, or those within the
    ``perplexity`` band of the current policy. ``phases``: whether there are phases at all. ``asks``: the critics
    whose answers the choice uses. ``failures``: whether failed episodes are among them.
    """

    replay: str = "none"
    phases: bool = True
    asks: tuple[str, ...] = ()
    failures: bool = True


DATA: dict[str, DataChoice] = {
    "demonstrations": DataChoice(phases=False, failures=False),
    "successful_rollouts": DataChoice(failures=False),
    "successful_rollouts_and_replay": DataChoice(replay="all", failures=False),
    "rollouts": DataChoice(),
    "rollouts_and_replay": DataChoice(replay="all"),
    "rollouts_and_replay_by_instruction": DataChoice(replay="all", asks=("value",)),
    "rollouts_and_filtered_replay": DataChoice(replay="perplexity"),
}
"""Choices of data by name."""

POTENTIAL_SOURCES = ("critic", "milestones", "clock")
"""Where the potential comes from: the critic, the recorded share of milestones, or, as a control, the step number."""

REFERENCES = ("phase_start", "warm_start")
"""The policies that a loss may compare with: the one the phase started from, or the one that RL started from."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Five choices by name.

    ``reward`` and ``advantage`` are None where the policy loss uses none. ``reference`` is the policy that the loss
    compares with; ``resolve`` sets it to None for a loss that compares with none. ``potential_source`` says where the
    potential of a shaped reward comes from.
    """

    name: str
    reward: str | None
    advantage: str | None
    policy_loss: str
    data: str
    reference: str | None = "phase_start"
    potential_source: str = "critic"

    @property
    def data_choice(self) -> DataChoice:
        """What the data choice asks for."""
        return DATA[self.data]

    @property
    def critics(self) -> tuple[str, ...]:
        """The critics that a phase trains, in this order, and asks."""
        asked = self.data_choice.asks
        if self.advantage is not None:
            asked += ADVANTAGE_ASKS[self.advantage] + (REWARD_ASKS[self.reward] if self.reward else ())
        if self.potential_source != "critic":
            asked = tuple(name for name in asked if name != "potential")
        return tuple(dict.fromkeys(asked))

    @property
    def shapes(self) -> bool:
        """Whether the reward is shaped by a potential."""
        return self.reward is not None and "potential" in REWARD_ASKS[self.reward]

    @property
    def needs_judged_steps(self) -> bool:
        """Whether the reward uses what a judge says of each step."""
        return self.reward in JUDGED_STEPS

    @property
    def needs_milestones(self) -> bool:
        """Whether the algorithm learns from which milestones were reached."""
        return self.reward in REACHED_MILESTONES or (self.shapes and self.potential_source != "clock")

    @property
    def needs_groups(self) -> bool:
        """Whether several episodes of a task are compared."""
        return self.advantage in GROUP_ADVANTAGES

    @property
    def needs_newest_policy(self) -> bool:
        """Whether the phase's rollouts must all be of the policy that the phase starts from."""
        return self.needs_groups or LOSS_NEEDS[self.policy_loss].on_policy

    @property
    def needs_phases(self) -> bool:
        """Whether the algorithm has phases at all (``sft`` stops after cloning)."""
        return self.data_choice.phases


_FILTERED = "rollouts_and_filtered_replay"
_ALGORITHMS = (
    Algorithm("sft", None, None, "cross_entropy", "demonstrations"),
    Algorithm("filtered_bc", "outcome", None, "cross_entropy", "successful_rollouts"),
    Algorithm("filtered_bc_replay", "outcome", None, "cross_entropy", "successful_rollouts_and_replay"),
    Algorithm("awr", "outcome", "doubly_robust", "awr", "rollouts_and_replay"),
    Algorithm("digirl", "outcome", "digirl", "hard_filter", "rollouts_and_replay_by_instruction"),
    Algorithm("digirl_released", "outcome", "webrl_released", "hard_filter", "rollouts_and_replay_by_instruction"),
    Algorithm("webrl", "outcome", "undiscounted", "squared_regression", _FILTERED),
    Algorithm("webrl_released", "outcome", "webrl_released", "webrl_released", _FILTERED),
    Algorithm("mira", "difference", "doubly_robust", "squared_regression", _FILTERED),
    Algorithm("mira_kl", "difference", "doubly_robust", "exp_weighted", _FILTERED),
    Algorithm("mira_no_pc", "outcome", "doubly_robust", "squared_regression", _FILTERED),
    Algorithm("mira_td", "difference", "td", "squared_regression", _FILTERED),
    Algorithm(
        "mira_milestones", "difference", "doubly_robust", "squared_regression", _FILTERED, potential_source="milestones"
    ),
    Algorithm("mira_clock", "difference", "doubly_robust", "squared_regression", _FILTERED, potential_source="clock"),
    Algorithm("webagent_r1", "outcome", "group_relative", "mgrpo", "rollouts", "warm_start"),
    Algorithm("outcome_grpo", "outcome_steps", "group_steps", "clipped_actions", "rollouts"),
    Algorithm("process_grpo", "process_steps", "group_steps", "clipped_actions", "rollouts"),
    Algorithm("admire_grpo", "admire", "group_steps", "clipped_actions", "rollouts"),
    Algorithm("admire_rloo", "admire", "group_steps_left_out", "clipped_actions", "rollouts"),
    Algorithm("admire_dapo", "admire", "group_steps", "clipped_tokens", "rollouts"),
)
ALGORITHMS: dict[str, Algorithm] = {one.name: one for one in _ALGORITHMS}
"""Algorithms by name."""


def value_discount(settings: LearnerSettings) -> float:
    """Return by how much a step further from its end an outcome is worth less to the value critic; 1 for not at all."""
    discounted = settings.value_target != "outcome" and resolve(settings).advantage not in UNDISCOUNTED
    return settings.gamma if discounted else 1.0


def value_is_shaped(settings: LearnerSettings) -> bool:
    """Whether V learns the return of the shaped reward, which pays for milestones too."""
    return settings.value_target == "shaped" and resolve(settings).shapes


def value_is_chance(settings: LearnerSettings) -> bool:
    """Whether V learns the chance of success: no return that is discounted, and none that pays for milestones too."""
    return value_discount(settings) == 1 and not value_is_shaped(settings)


def resolve(settings: LearnerSettings) -> Algorithm:
    """Return the algorithm that ``settings`` name, with their explicit choices put in.

    Raises:
        ValueError: an unknown name, with the known ones, or choices that do not go together.
    """
    _known("algorithm", settings.algorithm, ALGORITHMS)
    registries: Mapping[str, Iterable[str]] = {
        "reward": REWARD_ASKS,
        "advantage": ADVANTAGE_ASKS,
        "policy_loss": LOSS_NEEDS,
        "data": DATA,
        "reference": REFERENCES,
        "potential_source": POTENTIAL_SOURCES,
    }
    explicit = {choice: getattr(settings, choice) for choice in registries if getattr(settings, choice) is not None}
    for choice, name in explicit.items():
        _known(choice, name, registries[choice])
    algorithm = replace(ALGORITHMS[settings.algorithm], **explicit)
    needs = LOSS_NEEDS[algorithm.policy_loss]
    if not needs.advantage and (settings.advantage is not None or (settings.reward or "outcome") != "outcome"):
        raise ValueError(
            f"policy loss {algorithm.policy_loss!r} uses no advantage, found advantage={settings.advantage!r} and "
            f"reward={settings.reward!r}: leave both out of the learner's settings"
        )
    if not needs.advantage and algorithm.data_choice.failures:
        raise ValueError(
            f"policy loss {algorithm.policy_loss!r} clones what it is given, failures too, found data="
            f"{algorithm.data!r} of algorithm {settings.algorithm!r}: choose algorithm 'filtered_bc', or data of "
            f"successes alone ({', '.join(sorted(name for name, data in DATA.items() if not data.failures))})"
        )
    if not needs.advantage:
        algorithm = replace(algorithm, reward="outcome" if algorithm.reward else None, advantage=None)
    if needs.advantage and (algorithm.advantage is None or not algorithm.reward):
        raise ValueError(
            f"policy loss {algorithm.policy_loss!r} needs an advantage and a reward, found advantage="
            f"{algorithm.advantage!r} and reward={algorithm.reward!r}: set both in the learner's settings"
        )
    _go_together(algorithm)
    if settings.potential_source is not None and not algorithm.shapes:
        raise ValueError(
            f"reward {algorithm.reward!r} uses no potential, found potential_source={settings.potential_source!r}: "
            "leave it out of the learner's settings"
        )
    if settings.better_than_clock and algorithm.potential_source != "critic":
        raise ValueError(
            f"potential_source {algorithm.potential_source!r} is not the critic's, found better_than_clock, which asks "
            "whether the critic is: leave it out of the learner's settings"
        )
    if (settings.shaping_baseline != "none" or settings.better_than_clock) and not algorithm.shapes:
        raise ValueError(
            f"reward {algorithm.reward!r} is not shaped, found shaping_baseline={settings.shaping_baseline!r} and "
            f"better_than_clock={settings.better_than_clock}: leave both out of the learner's settings"
        )
    if needs.reference:
        return algorithm
    if settings.reference is not None:
        raise ValueError(
            f"policy loss {algorithm.policy_loss!r} compares with no reference, found reference="
            f"{settings.reference!r}: leave it out of the learner's settings"
        )
    return replace(algorithm, reference=None)


def _go_together(algorithm: Algorithm) -> None:
    """Refuse rewards, advantages and data that say nothing together."""
    if (algorithm.advantage in STEP_ADVANTAGES) != (algorithm.reward in STEP_TOTALS):
        raise ValueError(
            f"advantages {', '.join(STEP_ADVANTAGES)} and rewards {', '.join(STEP_TOTALS)} go together, found "
            f"advantage={algorithm.advantage!r} and reward={algorithm.reward!r}: set both in the learner's settings"
        )
    if algorithm.reward == "pbrs" and algorithm.advantage in (*UNDISCOUNTED, *GROUP_ADVANTAGES):
        raise ValueError(
            f"reward 'pbrs' is discounted, and advantage {algorithm.advantage!r} is not, so that what it adds would "
            "count against progress: set reward to 'difference', or choose another advantage in the learner's settings"
        )
    if algorithm.needs_groups and algorithm.data_choice.replay != "none":
        raise ValueError(
            f"advantage {algorithm.advantage!r} compares episodes that were sampled side by side, found "
            f"data={algorithm.data!r}, which brings stored ones: set data to 'rollouts' in the learner's settings"
        )
    if LOSS_NEEDS[algorithm.policy_loss].on_policy and algorithm.data_choice.replay != "none":
        raise ValueError(
            f"policy loss {algorithm.policy_loss!r} keeps the policy close to the one that sampled, found data="
            f"{algorithm.data!r}, which brings what older ones sampled: set data to 'rollouts' in the learner's "
            "settings"
        )


def _known(choice: str, name: str, registry: Iterable[str]) -> None:
    if name not in set(registry):
        raise ValueError(f"unknown {choice} {name!r}: choose one of {', '.join(sorted(registry))}")
