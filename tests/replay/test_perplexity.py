"""Perplexity and the band filter, with numbers worked by hand."""

import json
import math
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.perplexity import SCORED_AT_ONCE, Reason, ScoredEpisode, band_filter, fill_cap, perplexity
from replay.settings import ReplaySettings


def scored(episode_id: str, *probabilities: list[float]) -> ScoredEpisode:
    return ScoredEpisode(episode_id, [np.log(np.array(p, dtype=np.float64)).astype(np.float32) for p in probabilities])


def reasons(record) -> dict[str, str]:
    return {d.episode_id: d.reason.value for d in record.decisions}


def test_perplexity_is_the_inverse_geometric_mean_of_probabilities():
    assert perplexity(np.log([0.5, 0.5])) == pytest.approx(2)
    assert perplexity(np.log([0.9])) == pytest.approx(1 / 0.9)
    # Geometric mean of 1/2 and 1/8 is 1/4.
    assert perplexity(np.log([0.5, 0.125])) == pytest.approx(4)
    assert perplexity([0.0, 0.0]) == 1.0


def test_perplexity_of_nothing_is_an_error_and_of_the_impossible_infinite():
    with pytest.raises(ValueError, match="at least one token"):
        perplexity([])
    assert perplexity([-math.inf]) == math.inf
    assert perplexity([-1e6]) == math.inf


def test_the_band_includes_its_limits():
    kept, record = band_filter([
        scored("certain", [0.99]), scored("low", [0.9, 0.9]), scored("middle", [0.7]), scored("high", [0.5]),
        scored("far", [0.4]), scored("empty"), ScoredEpisode("impossible", [np.array([-np.inf], np.float32)]),
    ])  # fmt: skip
    assert [k.episode_id for k in kept] == ["high", "low", "middle"]
    assert reasons(record) == {
        "certain": "below_band", "low": "kept", "middle": "kept", "high": "kept", "far": "above_band",
        "empty": "no_tokens", "impossible": "not_finite",
    }  # fmt: skip


def test_a_trajectory_is_weighed_by_tokens_not_by_steps():
    # Steps alone: 1/0.95 (2 tokens) and 4 (1 token). Together (0.95 * 0.95 * 0.25)^(-1/3) = 1.6429.
    episode = scored("a", [0.95, 0.95], [0.25])
    kept, record = band_filter([episode])
    assert record.decisions[0].perplexity == pytest.approx((0.95 * 0.95 * 0.25) ** (-1 / 3), rel=1e-6)
    assert kept[0].steps == (0, 1)


def test_per_step_keeps_steps_of_their_own():
    kept, record = band_filter([scored("a", [0.95], [0.7], [0.25], [0.6])], per="step")
    assert [(k.episode_id, k.steps) for k in kept] == [("a", (1, 3))]
    assert [d.step for d in record.decisions] == [0, 1, 2, 3]
    assert record.counts() == {
        "kept": 2, "below_band": 1, "above_band": 1, "over_cap": 0, "no_tokens": 0, "not_finite": 0,
    }  # fmt: skip


def test_an_empty_step_does_not_drop_its_trajectory():
    kept, _ = band_filter([ScoredEpisode("a", [np.empty(0, np.float32), np.log([0.7]).astype(np.float32)])])
    assert kept[0].steps == (0, 1)


@given(st.permutations([scored(f"e{i}", [0.5 + 0.02 * i]) for i in range(20)]), st.integers(0, 25), st.integers(0, 3))
def test_the_cap_holds_and_the_choice_does_not_depend_on_order(episodes, cap, seed):
    kept, record = band_filter(episodes, cap=cap, seed=seed)
    again, _ = band_filter(sorted(episodes, key=lambda e: e.episode_id), cap=cap, seed=seed)
    assert kept == again
    assert len(kept) == min(cap, 20)
    assert record.counts()["over_cap"] == 20 - len(kept)
    assert len(record.decisions) == 20


def test_the_cap_is_a_sample_that_the_seed_draws():
    episodes = [scored(f"e{i:02d}", [0.7]) for i in range(40)]
    draws = {tuple(k.episode_id for k in band_filter(episodes, cap=5, seed=seed)[0]) for seed in range(5)}
    assert len(draws) > 1


@given(st.lists(st.lists(st.lists(st.floats(1e-4, 1.0), max_size=4), max_size=4), max_size=10), st.booleans())
def test_every_unit_has_one_decision_and_the_histogram_counts_them_all(cases, by_step):
    episodes = [scored(str(i), *steps) for i, steps in enumerate(cases)]
    kept, record = band_filter(episodes, per="step" if by_step else "trajectory")
    units = sum(len(e.step_logprobs) for e in episodes) if by_step else len(episodes)
    assert len(record.decisions) == units == sum(record.counts().values())
    assert sum(record.histogram()[1]) == sum(d.perplexity is not None for d in record.decisions)
    kept_units = sum(len(k.steps) for k in kept) if by_step else len(kept)
    assert kept_units == record.counts()[Reason.KEPT]


def test_the_histogram_has_the_band_among_its_edges():
    _, record = band_filter([scored("a", [1.0]), scored("b", [0.7]), scored("c", [0.45]), scored("d", [1e-9])])
    edges, counts = record.histogram()
    assert edges[0] == 1.0
    assert edges[-1] == math.inf
    assert {1 / 0.9, 2.0} <= set(edges)
    where = {edge: count for edge, count in zip(edges, counts, strict=False) if count}
    assert where == {1.0: 1, 1.35: 1, 2.0: 1, 100.0: 1}
    assert json.loads(json.dumps(asdict(record.summary()), allow_nan=False))["histogram"]["edges"][-1] is None


def test_two_records_of_one_episode_are_refused():
    with pytest.raises(ValueError, match=r"several records of \['a'\]"):
        band_filter([scored("a", [0.7]), scored("a", [0.7])])


def test_settings_cap_relative_to_rollouts_and_reject_nonsense():
    assert ReplaySettings().cap(256) == 512
    assert ReplaySettings(cap_per_rollout=0.5).cap(5) == 2
    with pytest.raises(ValueError, match="perplexity_low"):
        ReplaySettings(perplexity_low=3.0)


class Learner:
    """Scores episodes whose ids end in an even number inside the band, and counts how many it was asked for."""

    def __init__(self):
        self.asked = []

    def score(self, ids):
        self.asked.append(list(ids))
        return [ScoredEpisode(i, [np.log([0.7 if int(i[1:]) % 2 == 0 else 0.999])]) for i in ids]


BAND = {"low": 1 / 0.9, "high": 2.0, "per": "trajectory"}


def stored(count):
    return [f"e{i:05}" for i in range(count)]


def test_few_episodes_are_scored_at_once_in_their_order_and_filtered_as_before():
    learner = Learner()
    kept, record = fill_cap(stored(300), learner.score, cap=20, seed=3, **BAND)
    assert learner.asked == [stored(300)]
    assert (kept, record) == band_filter(Learner().score(stored(300)), cap=20, seed=3, **BAND)
    assert fill_cap([], learner.score, cap=20, seed=3, **BAND)[0] == ()
    assert len(learner.asked) == 1, "of nothing nobody is asked"


def test_scoring_stops_when_the_cap_is_full_and_goes_on_until_it_is():
    learner = Learner()
    kept, record = fill_cap(stored(5000), learner.score, cap=20, seed=3, **BAND)
    assert len(kept) == 20
    assert [len(ids) for ids in learner.asked] == [SCORED_AT_ONCE]
    assert record.unscored == 5000 - SCORED_AT_ONCE
    learner = Learner()
    kept, record = fill_cap(stored(1200), learner.score, cap=600, seed=3, **BAND)
    assert len(kept) == 600
    assert sorted(i for ids in learner.asked for i in ids) == stored(1200)
    assert record.unscored == 0


def test_each_episode_in_the_band_is_as_likely_as_if_all_were_scored():
    counts = Counter()
    for seed in range(300):
        kept, _ = fill_cap(stored(1040), Learner().score, cap=52, seed=seed, **BAND)
        counts.update(unit.episode_id for unit in kept)
    drawn = np.array([counts[i] for i in stored(1040)[::2]])
    # 300 draws of 52 among 520: 30 each; a chi-square of 519 degrees of freedom lies below 660 in 99.998 % of cases.
    assert drawn.sum() == 300 * 52
    assert ((drawn - 30) ** 2 / (30 * 0.9)).sum() < 660
    assert counts.total() == drawn.sum(), "none from outside the band"


def test_what_the_syntax_determines_hides_a_choice_among_tokens_and_not_among_actions():
    chosen = scored("a", [*[1.0] * 7, 0.6], [*[1.0] * 7, 0.7])
    _, by_token = band_filter([chosen])
    assert by_token.decisions[0].perplexity == pytest.approx((0.6 * 0.7) ** (-1 / 16), rel=1e-6)
    assert reasons(by_token) == {"a": "below_band"}
    kept, by_action = band_filter([chosen], of="actions")
    assert by_action.decisions[0].perplexity == pytest.approx((0.6 * 0.7) ** (-1 / 2), rel=1e-6)
    assert kept[0].steps == (0, 1)
    assert by_action.summary().of == "actions"
    kept, _ = band_filter(
        [ScoredEpisode("b", [np.empty(0, np.float32), np.log([0.7]).astype(np.float32)])], of="actions"
    )
    assert kept[0].steps == (0, 1)
