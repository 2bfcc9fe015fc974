"""Every constant of the learner, with its unit and its source.

Owns the frozen dataclasses that ``cluster.recipe.recipe`` embeds; each refuses what makes no sense when it is made.
Imports neither torch nor pydantic. Learning rates default to the published ones (MiRA table 6), which suit models of
8-12 B parameters; a tiny model needs larger ones, which its recipe states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from learner.algorithms import resolve
from records.bounds import above, at_least, one_of, require, share, times

FORBID_UNKNOWN = {"extra": "forbid"}


@dataclass(frozen=True)
class CloneSettings:
    """Behaviour cloning on demonstrations."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    learning_rate: float = 1e-5
    """Peak AdamW learning rate."""
    updates: int = 1000
    """Number of optimiser updates; with ``time_limit_s`` unset the run is deterministic."""
    time_limit_s: float | None = None
    """Wall-clock limit in seconds; the learning rate then decays with whichever of time and updates is further."""
    batch_steps: int = 128
    """Decisions (steps of trajectories) per update."""
    prompt_weight: float = 0.0
    """Weight of the prompts' own cross-entropy per token: a small model learns to copy sooner when it also predicts
    pages. 0 trains on actions alone, as is usual for a pretrained model."""
    prompt_share: float = 0.7
    """Share of the run after which the prompts' cross-entropy is dropped."""
    warmup_share: float = 0.1
    """Share of the run during which the learning rate rises linearly from zero."""
    decay: str = "cosine"
    """Shape of the decay after the warm-up: ``cosine``, ``linear`` or ``constant``."""
    final_share: float = 0.0
    """Share of the peak learning rate that is left at the end."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this L2 norm."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""

    def __post_init__(self) -> None:
        """Refuse what no cloning can be done with."""
        _check_training(self, "learning_rate")
        at_least(self, 0, "updates", "prompt_weight")
        times(self)
        share(self, "prompt_share", "warmup_share", "final_share")
        one_of(self, "decay", ("cosine", "linear", "constant"))


@dataclass(frozen=True)
class CriticSettings:
    """One critic: language-model backbone, MLP head, sigmoid."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN
    unset: ClassVar[Mapping[str, object]] = {"max_states": 0}

    learning_rate: float = 1e-6
    """Constant AdamW learning rate in a phase."""
    epochs: int = 1
    """Passes over the data in a phase."""
    pretrain_learning_rate: float = 1e-6
    """Constant AdamW learning rate of the pre-training before the first phase."""
    pretrain_epochs: int = 1
    """Passes over the data in the pre-training."""
    batch_steps: int = 128
    """States per update."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this L2 norm."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""
    max_states: int = 0
    """Most states that a phase teaches it, of whole episodes drawn at random; 0 takes all. Pre-training takes all."""
    use_replay: bool = True
    """Whether earlier trajectories join this phase's rollouts: replayed successes, which raise the values, and the past
    rollouts of ``replay.critic_phases``."""

    def __post_init__(self) -> None:
        """Refuse what no critic can be trained with."""
        _check_training(self, "learning_rate", "pretrain_learning_rate")
        at_least(self, 0, "epochs", "pretrain_epochs", "max_states")


@dataclass(frozen=True)
class PotentialDataSettings:
    """Which trajectories teach the potential critic what (MiRA, appendix A.7)."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    max_identical_actions: int = 5
    """Trajectories that repeat an identical action more often than this in a row are left out."""
    max_steps: int = 15
    """Trajectories of this many steps or more are left out."""
    max_horizons: float = 0.0
    """Where the expert's number of steps is known, trajectories of this many times as many or more are left out, in
    place of ``max_steps``; 0 keeps to that."""
    labels: str = "successes"
    """``successes``: progress of successes alone, between milestones in even steps (MiRA eq. 2). ``all``: the share of
    milestones done, of successes and failures; a failure has at most all but one."""

    def __post_init__(self) -> None:
        """Refuse limits that leave out every trajectory."""
        at_least(self, 1, "max_identical_actions")
        at_least(self, 2, "max_steps")
        at_least(self, 0, "max_horizons")
        one_of(self, "labels", ("successes", "all"))


@dataclass(frozen=True)
class ActorSettings:
    """The policy update of a phase."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN
    unset: ClassVar[Mapping[str, object]] = {"max_decisions": 0}

    learning_rate: float = 1e-6
    """AdamW's learning rate, that of the phase's first update."""
    decay: str = "constant"
    """How the rate goes on over a phase's updates: ``constant``, or ``linear`` to 0."""
    epochs: int = 1
    """Passes over the phase's data."""
    kl_limit: float | None = None
    """KL divergence from the policy at the phase's start, in nats a token, past which no further epoch begins; it is
    estimated after each on ``probe_steps`` of the phase's own decisions, or, where none of them teaches, of the
    replayed ones. Unset makes all ``epochs``."""
    batch_steps: int = 128
    """Decisions per update."""
    max_decisions: int = 0
    """Most decisions that a phase learns from, of whole episodes drawn at random among those that the algorithm learns
    from; 0 takes all."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this L2 norm."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""
    beta: float = 1.0
    """Temperature of the KL regularisation (MiRA eq. 5, 12): A / beta is the log-ratio that the loss asks for."""
    log_ratio: str = "sum"
    """Log-probability of an action: ``sum`` over its tokens (MiRA eq. 12), or their ``mean``."""
    probe_steps: int = 512
    """Decisions on which the achieved log-ratio and the KL divergence are measured; 0 leaves both out."""

    def __post_init__(self) -> None:
        """Refuse what no update can be made with."""
        _check_training(self, "learning_rate")
        at_least(self, 0, "epochs", "probe_steps", "max_decisions")
        above(self, 0, "beta")
        one_of(self, "log_ratio", ("sum", "mean"))
        one_of(self, "decay", ("constant", "linear"))
        if self.kl_limit is not None:
            above(self, 0, "kl_limit")
            at_least(self, 1, "probe_steps")


@dataclass(frozen=True)
class AwrSettings:
    """The policy loss ``awr``."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    max_weight: float = 20.0
    """Upper limit of the weight exp(A / beta)."""

    def __post_init__(self) -> None:
        """Refuse a limit that leaves nothing."""
        above(self, 0, "max_weight")


@dataclass(frozen=True)
class HardFilterSettings:
    """The policy loss ``hard_filter``."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    threshold: float = 0.0
    """Steps with an advantage up to this are left out."""


@dataclass(frozen=True)
class MGrpoSettings:
    """The policy loss ``mgrpo`` of WebAgent-R1."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    clip: float = 0.2
    """The ratio to the policy that sampled counts within 1 - clip and 1 + clip."""
    kl_weight: float = 0.001
    """Weight of the divergence from the reference, per token."""

    def __post_init__(self) -> None:
        """Refuse ranges of nothing."""
        above(self, 0, "clip")
        share(self, "clip")
        at_least(self, 0, "kl_weight")


@dataclass(frozen=True)
class ClipSettings:
    """A policy loss with a clipped ratio."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    clip_low: float = 0.2
    """The ratio to the policy that sampled counts from 1 - clip_low."""
    clip_high: float = 0.2
    """It counts up to 1 + clip_high."""

    def __post_init__(self) -> None:
        """Refuse ranges of nothing."""
        above(self, 0, "clip_low", "clip_high")
        share(self, "clip_low")


@dataclass(frozen=True)
class LossSettings:
    """The policy losses' own settings; what they share (beta, log_ratio) is in ``learner.actor``."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    awr: AwrSettings = field(default_factory=AwrSettings)
    """Advantage-weighted regression."""
    hard_filter: HardFilterSettings = field(default_factory=HardFilterSettings)
    """Advantage-weighted regression with a hard filter."""
    mgrpo: MGrpoSettings = field(default_factory=MGrpoSettings)
    """Clipped ratio per token with a divergence, each trajectory and each action weighing the same (WebAgent-R1)."""
    clipped_actions: ClipSettings = field(default_factory=ClipSettings)
    """Clipped ratio of whole actions (ADMIRE eq. 12)."""
    clipped_tokens: ClipSettings = field(default_factory=lambda: ClipSettings(clip_high=0.28))
    """Clipped ratio per token, each token weighing the same, with more room above (DAPO)."""


@dataclass(frozen=True)
class AdmireSettings:
    """The reward ``admire``: what reaching milestones earns (ADMIRE, sections 3.2.2 and 3.3)."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    weight: float = 0.3
    """Weight of the milestones' part before any decay (lambda_0)."""
    decay: float = 0.99
    """The weight is multiplied by this in each phase; 1 keeps it."""
    hit_bonus: float = 0.5
    """What a step of a failure that reaches a milestone earns beyond the base (zeta)."""
    base: str = "trajectory"
    """Milestones that the base counts, as a share of all: those of the whole ``trajectory`` (eq. 11), or those reached
    ``so_far`` (the paper's algorithm 1)."""
    base_of_failures: bool = True
    """Whether each step of a failure earns the base."""
    base_of_successes: bool = False
    """Whether each step of a success earns it too."""

    def __post_init__(self) -> None:
        """Refuse negative weights and a growing decay."""
        at_least(self, 0, "weight", "hit_bonus")
        share(self, "decay")
        one_of(self, "base", ("trajectory", "so_far"))


@dataclass(frozen=True)
class RewardSettings:
    """The rewards whose steps are wholes of their own: ``outcome_steps``, ``process_steps`` and ``admire``."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    format_weight: float = 0.5
    """What a step that is no action loses (ADMIRE's eta)."""
    judged_weight: float = 0.3
    """Weight of a judge's word on a step, in ``process_steps``."""
    admire: AdmireSettings = field(default_factory=AdmireSettings)
    """What reaching milestones earns."""

    def __post_init__(self) -> None:
        """Refuse negative weights."""
        at_least(self, 0, "format_weight", "judged_weight")


@dataclass(frozen=True)
class InstructionFilterSettings:
    """The instruction-level filter of ``digirl``'s choice of data."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    keep: float = 0.5
    """Share of trajectories that are kept."""

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        share(self, "keep")


@dataclass(frozen=True)
class AdapterSettings:
    """LoRA adapters for actor and critics on one frozen backbone, in place of full models."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    rank: int = 0
    """Rank of each adapter, at most 512; 0 trains full models."""
    alpha: float = 32.0
    """Scale: what an adapter adds is multiplied by ``alpha / rank``."""
    modules: tuple[str, ...] = ()
    """Last names of the linear layers that get adapters, such as ``q_proj``; empty is all of attention and feed-forward
    parts."""
    layers: int | None = None
    """Uppermost layers that get adapters, in number; unset is all. The layers below then take no gradient, and run once
    where both critics are asked about the same states."""
    backbone_dtype: str = "bfloat16"
    """Precision of the frozen backbone: ``bfloat16`` or ``float32``; adapters and heads are in float32."""

    def __post_init__(self) -> None:
        """Refuse ranks and scales of nothing."""
        require(0 <= self.rank <= 512, "rank", "a number from 0 to 512", self.rank)
        above(self, 0, "alpha")
        at_least(self, 1, "layers")
        one_of(self, "backbone_dtype", ("bfloat16", "float32"))


@dataclass(frozen=True)
class LearnerSettings:
    """The learner: an algorithm (five choices, see ``learner.algorithms``) and its constants."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN
    operational: ClassVar[tuple[str, ...]] = ("ranks", "bookmark_every_s")

    algorithm: str = "mira"
    """Name of the algorithm, which picks reward, advantage, policy loss, data and reference."""
    reward: str | None = None
    """Another reward than the algorithm's: ``outcome``, ``difference``, ``pbrs`` or ``process``; ``outcome_steps``,
    ``process_steps`` or ``admire`` for advantages of steps. Those of a process need ``replay.step_rewards``."""
    advantage: str | None = None
    """Another advantage than the algorithm's (see ``learner.credit``)."""
    policy_loss: str | None = None
    """Another policy loss than the algorithm's (see ``learner.losses``)."""
    data: str | None = None
    """Another choice of data than the algorithm's (see ``learner.data_choices``)."""
    reference: str | None = None
    """Another policy for the loss to compare with than the algorithm's: ``phase_start`` or ``warm_start``, of which the
    learner keeps a copy, in its checkpoints too."""
    potential_source: str | None = None
    """Another source of the potential than the algorithm's: the ``critic``, the recorded share of ``milestones``, or,
    as a control, the ``clock`` (the step number over the expert's): what it achieves too, milestones do not explain."""
    shaping_baseline: str = "none"
    """What is taken out of the shaping reward: ``none``, or ``step``, its mean over a phase's episodes at the same step
    number, so that an episode earns nothing by being long."""
    better_than_clock: bool = False
    """Refuse to shape by a potential critic that tells no better than a clock, among the steps of the phase's failures,
    which of them reach a milestone. Without both kinds of steps nothing is refused."""
    gamma: float = 0.9
    """Discount per step."""
    alpha: float = 0.3
    """Scale of the shaping reward, or of what the steps of an episode earn together (``process``)."""
    lam: float = 0.5
    """Share of the one-step TD error in the doubly robust advantage (MiRA eq. 10)."""
    value_target: str = "outcome"
    """What the value critic learns: the ``outcome`` (MiRA eq. 4), its discounted ``return``, or that of the ``shaped``
    reward. MiRA eq. 10 sets discounted returns against V: with ``outcome`` and gamma < 1, early steps of long successes
    get negative advantages. The first two are the same where advantages are undiscounted (``undiscounted``, ``digirl``,
    ``value_difference``, ``webrl_released``), the last two where nothing is shaped. ``shaped`` takes
    out of the shaping what was to be expected, so that what leads away from milestones gets a negative advantage; it is
    taught by recorded ones (or the clock)."""
    clone: CloneSettings = field(default_factory=CloneSettings)
    """Behaviour cloning."""
    actor: ActorSettings = field(default_factory=ActorSettings)
    """Policy update."""
    losses: LossSettings = field(default_factory=LossSettings)
    """What single policy losses are told."""
    rewards: RewardSettings = field(default_factory=RewardSettings)
    """What rewards of single steps are told."""
    instruction_filter: InstructionFilterSettings = field(default_factory=InstructionFilterSettings)
    """The instruction-level filter of ``digirl``."""
    value: CriticSettings = field(default_factory=CriticSettings)
    """Value critic."""
    potential: CriticSettings = field(
        default_factory=lambda: CriticSettings(
            learning_rate=2e-5, epochs=3, pretrain_learning_rate=2e-5, pretrain_epochs=3
        )
    )
    """Potential critic."""
    potential_data: PotentialDataSettings = field(default_factory=PotentialDataSettings)
    """What the potential critic learns from."""
    cross_fit: bool = False
    """Keep two of each critic, of which each learns from the episodes of one half of the tasks and judges those of the
    other: no critic is asked about what it was taught (docs/decisions/0183). The papers have one."""
    adapters: AdapterSettings = field(default_factory=AdapterSettings)
    """Adapters in place of full models."""
    seed: int = 0
    """Seed of the critics' heads, of adapters' first weights and of the shuffles before the first phase. Those of a
    phase go by ``run.seed``."""
    device: str = "cpu"
    """Torch device: ``cpu``, ``cuda``, ``cuda:N`` or ``mps``."""
    precision: str = "float32"
    """Arithmetic of forward and backward passes: ``float32`` or ``bfloat16`` (autocast); weights stay float32."""
    ranks: int = 1
    """Processes that train together, each on a GPU of its own: whole models, their gradients and optimisers are spread
    over them (FSDP2); of adapters each has all, with a backbone of its own. 1 trains in one process."""
    threads: int = 1
    """CPU threads of torch in the learner's process."""
    bookmark_every_s: float = 600.0
    """Seconds after which a training writes down where it stands; a learner that dies goes on from there."""
    micro_batch_tokens: int = 4096
    """Most tokens in one forward pass; no influence on the result beyond rounding. 2048-4096 is fastest for tiny models
    on a CPU, a GPU wants more."""
    shuffle: str = "steps"
    """What an epoch draws: ``steps``, each by itself, or ``episodes``, so that an episode's steps come into the same
    batch, which computes the head that their prompts share once."""
    recompute: bool = False
    """Activation checkpointing: layers keep their inputs alone and compute the rest again for the gradient, which takes
    a third more time and a fraction of the memory."""

    def critic_parts(self, name: str) -> tuple[str, ...]:
        """Return the names of the models that the critic ``name`` consists of: one, or one a half of the tasks."""
        return (name, f"{name}_other") if self.cross_fit else (name,)

    @property
    def computes_in(self) -> str:
        """The coarser of the precisions in which log-probabilities are computed."""
        backbone = self.adapters.backbone_dtype if self.adapters.rank else "float32"
        return "bfloat16" if "bfloat16" in (self.precision, backbone) else "float32"

    def __post_init__(self) -> None:
        """Refuse names that do not exist, choices that do not go together and numbers that make no sense."""
        algorithm = resolve(self)
        one_of(self, "value_target", ("outcome", "return", "shaped"))
        require(
            self.value_target != "shaped" or algorithm.reward != "pbrs", "value_target",
            "'outcome' or 'return' with the reward 'pbrs', whose returns may be negative", self.value_target,
        )  # fmt: skip
        one_of(self, "shaping_baseline", ("none", "step"))
        require(
            self.value_target != "shaped" or self.shaping_baseline == "none", "shaping_baseline",
            "'none' with the value target 'shaped', which takes out what was to be expected", self.shaping_baseline,
        )  # fmt: skip
        one_of(self, "precision", ("float32", "bfloat16"))
        share(self, "gamma", "lam")
        above(self, 0, "bookmark_every_s")
        at_least(self, 0, "alpha", "seed")
        at_least(self, 1, "ranks", "threads", "micro_batch_tokens")
        one_of(self, "shuffle", ("steps", "episodes"))
        spreads = self.ranks == 1 or self.device in ("cpu", "cuda")
        require(spreads, "device", "'cuda', or 'cpu' for trials, where ranks is above 1", self.device)
        known = re.fullmatch(r"cpu|mps|cuda(:\d+)?", self.device)
        require(known is not None, "device", "'cpu', 'cuda', 'cuda:N' or 'mps'", self.device)


def _check_training(owner: CloneSettings | CriticSettings | ActorSettings, *rates: str) -> None:
    """Refuse rates, batches and limits with which nothing can be trained."""
    at_least(owner, 0, *rates, "weight_decay")
    at_least(owner, 1, "batch_steps")
    above(owner, 0, "max_grad_norm")
