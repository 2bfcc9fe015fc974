"""Perplexity of stored episodes under the current policy, and the band filter with its record of every decision.

Owns ``perplexity``, ``band_filter``, ``fill_cap`` and ``FilterRecord``. Pure: takes log-probabilities that the learner
computed, returns what to replay and why the rest was left out. The result does not depend on the order
of the records. Sources: MiRA alg. 2; WebRL's released code for the filter per step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

SCORED_AT_ONCE = 512
"""Fewest stored episodes that are scored before the filter looks whether its cap is full."""
HISTOGRAM_INNER_EDGES = (1.01, 1.03, 1.06, 1.2, 1.35, 1.5, 1.75, 2.5, 3.0, 4.0, 6.0, 10.0, 100.0)


class Reason(StrEnum):
    """Why an episode or a step is replayed, or is not."""

    KEPT = "kept"
    BELOW_BAND = "below_band"
    ABOVE_BAND = "above_band"
    OVER_CAP = "over_cap"
    NO_TOKENS = "no_tokens"
    NOT_FINITE = "not_finite"


@dataclass(frozen=True, slots=True)
class ScoredEpisode:
    """An episode's action tokens under the *current* policy: one array (A_t,) of natural-log probabilities a step."""

    episode_id: str
    step_logprobs: Sequence[npt.NDArray[np.floating[Any]]]


@dataclass(frozen=True, slots=True)
class Kept:
    """The steps of one episode that are replayed, in order."""

    episode_id: str
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one episode (``step`` None) or one step; ``perplexity`` None where there is none."""

    episode_id: str
    step: int | None
    perplexity: float | None
    reason: Reason


@dataclass(frozen=True, slots=True)
class Histogram:
    """Bin ``edges`` (B + 1,), of which the last is infinity, written as None, and ``counts`` (B,)."""

    edges: tuple[float | None, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FilterSummary:
    """The filter's settings, units by reason, the histogram of finite perplexities, and episodes left unscored."""

    low: float
    high: float
    per: str
    cap: int | None
    counts: dict[str, int]
    histogram: Histogram
    unscored: int
    of: str = "tokens"


@dataclass(frozen=True, slots=True)
class FilterRecord:
    """Every decision of one run of the filter, in the order of episode ids and steps."""

    low: float
    high: float
    per: str
    cap: int | None
    decisions: tuple[Decision, ...]
    unscored: int = 0
    """Episodes that were not looked at, because the cap was full."""
    of: str = "tokens"

    def counts(self) -> dict[str, int]:
        """Return how many units got each reason; every reason is named, also with 0."""
        found = Counter(decision.reason for decision in self.decisions)
        return {reason.value: found[reason] for reason in Reason}

    def histogram(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Return bin edges (B + 1,) and counts (B,) of all finite perplexities; the band's limits are edges.

        Bins are closed on the left; the first edge is 1 and the last infinity.
        """
        inner = sorted({*HISTOGRAM_INNER_EDGES, self.low, self.high} - {1.0})
        edges = (1.0, *inner, float("inf"))
        values = [d.perplexity for d in self.decisions if d.perplexity is not None and np.isfinite(d.perplexity)]
        counts = np.bincount(np.searchsorted(inner, values, side="right"), minlength=len(edges) - 1)
        return edges, tuple(int(count) for count in counts)

    def summary(self) -> FilterSummary:
        """Return the filter's settings and counts, without the single decisions."""
        edges, counts = self.histogram()
        return FilterSummary(
            self.low,
            self.high,
            self.per,
            self.cap,
            self.counts(),
            Histogram((*edges[:-1], None), counts),
            self.unscored,
            self.of,
        )


def perplexity(logprobs: npt.ArrayLike) -> float:
    """Return exp(-mean log p) of tokens or actions (N,), in double precision; infinity where it overflows.

    Raises:
        ValueError: for none, whose perplexity is not defined.
    """
    values = np.asarray(logprobs, dtype=np.float64)
    if values.size == 0:
        raise ValueError("perplexity: expected at least one token, found none; leave empty actions out")
    with np.errstate(over="ignore"):
        return float(np.exp(-values.mean()))


def band_filter(
    episodes: Iterable[ScoredEpisode],
    *,
    low: float = 1 / 0.9,
    high: float = 1 / 0.5,
    per: Literal["trajectory", "step"] = "trajectory",
    of: Literal["tokens", "actions"] = "tokens",
    cap: int | None = None,
    seed: int = 0,
) -> tuple[tuple[Kept, ...], FilterRecord]:
    """Keep the units whose perplexity lies in [low, high], at most ``cap`` of them.

    A unit is a whole trajectory, all its tokens taken together, or a single step. With ``of="actions"`` the mean is
    over its actions, whose probability is the product of their tokens'. Over the cap a uniform sample is kept, drawn
    with ``seed``. Episodes come back in the order of their ids.

    Raises:
        ValueError: for two records of one episode id, a negative cap, or an empty band.
    """
    if not 1.0 <= low <= high or (cap is not None and cap < 0):
        raise ValueError(f"band filter: expected 1 <= low <= high and cap >= 0, found {low}, {high} and {cap}")
    ordered = sorted(episodes, key=lambda episode: episode.episode_id)
    repeated = [i for i, n in Counter(episode.episode_id for episode in ordered).items() if n > 1]
    if repeated:
        raise ValueError(f"band filter: expected each episode once, found several records of {repeated[:5]}")
    decisions = [_judge(*unit, low, high) for episode in ordered for unit in _units(episode, per, of)]
    inside = [index for index, decision in enumerate(decisions) if decision.reason is Reason.KEPT]
    if cap is not None and len(inside) > cap:
        chosen = np.random.default_rng(seed).choice(len(inside), size=cap, replace=False)
        for index in set(inside) - {inside[i] for i in chosen}:
            left_out = decisions[index]
            decisions[index] = Decision(left_out.episode_id, left_out.step, left_out.perplexity, Reason.OVER_CAP)
    return _collect(ordered, decisions), FilterRecord(low, high, per, cap, tuple(decisions), of=of)


def fill_cap(
    episode_ids: Sequence[str],
    score: Callable[[Sequence[str]], Sequence[ScoredEpisode]],
    *,
    low: float,
    high: float,
    per: Literal["trajectory", "step"],
    cap: int,
    seed: int,
    of: Literal["tokens", "actions"] = "tokens",
) -> tuple[tuple[Kept, ...], FilterRecord]:
    """Score stored episodes in random order until ``cap`` units lie in the band, then choose as ``band_filter`` does.

    Each unit in the band is kept with the same probability as if all were scored: the order is drawn with ``seed``, and
    which come first does not depend on their scores. Few episodes are scored at once, in the order given.
    """
    at_once = max(SCORED_AT_ONCE, 2 * cap)
    order = list(episode_ids)
    if len(order) > at_once:
        order = [order[i] for i in np.random.default_rng((seed, 1)).permutation(len(order))]
    scored: list[ScoredEpisode] = []
    while True:
        following = order[len(scored) : len(scored) + at_once]
        scored += score(following) if following else ()
        kept, record = band_filter(scored, low=low, high=high, per=per, of=of, cap=cap, seed=seed)
        full = record.counts()[Reason.KEPT.value] == cap
        if full or len(scored) >= len(order):
            return kept, replace(record, unscored=len(order) - len(scored))


def _units(episode: ScoredEpisode, per: str, of: str) -> list[tuple[str, int | None, npt.NDArray[np.float64]]]:
    arrays = [np.asarray(array, dtype=np.float64) for array in episode.step_logprobs]
    if of == "actions":
        arrays = [array.sum(keepdims=True) if array.size else array for array in arrays]
    if per == "step":
        return [(episode.episode_id, step, array) for step, array in enumerate(arrays)]
    return [(episode.episode_id, None, np.concatenate(arrays) if arrays else np.empty(0))]


def _judge(episode_id: str, step: int | None, logprobs: npt.NDArray[np.float64], low: float, high: float) -> Decision:
    if logprobs.size == 0:
        return Decision(episode_id, step, None, Reason.NO_TOKENS)
    value = perplexity(logprobs)
    if not np.isfinite(value):
        return Decision(episode_id, step, value, Reason.NOT_FINITE)
    # float32 log-probabilities cannot hit a limit exactly: one part in a million counts as on it.
    tolerance = 1e-6
    if value < low * (1 - tolerance):
        return Decision(episode_id, step, value, Reason.BELOW_BAND)
    if value > high * (1 + tolerance):
        return Decision(episode_id, step, value, Reason.ABOVE_BAND)
    return Decision(episode_id, step, value, Reason.KEPT)


def _collect(ordered: Sequence[ScoredEpisode], decisions: Sequence[Decision]) -> tuple[Kept, ...]:
    steps: dict[str, list[int]] = {}
    lengths = {episode.episode_id: len(episode.step_logprobs) for episode in ordered}
    for decision in decisions:
        if decision.reason is Reason.KEPT:
            whole = range(lengths[decision.episode_id]) if decision.step is None else [decision.step]
            steps.setdefault(decision.episode_id, []).extend(whole)
    return tuple(Kept(episode_id, tuple(indices)) for episode_id, indices in steps.items())
