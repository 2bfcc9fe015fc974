"""What ``waymark check`` says of a phase: counted by hand for a small recipe, measured or told for its hours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.preflight import pace
from cluster.preflight.pace import phase_pace
from cluster.recipe.recipe import load_recipe
from learner.pace import PhaseData, phase_work
from learner.settings import ActorSettings, AdapterSettings, CriticSettings, LearnerSettings
from policy.model_size import ModelSize

LAPTOP = Path("cluster/recipes/laptop.yaml")
SIZE = ModelSize(
    parameters=1_000, own_head=100, vocabulary=10, width=10, layers=2, queries=7, keys_values=9, mlp=9, norms=9
)
ONCE = CriticSettings(epochs=1)
SETTINGS = LearnerSettings(actor=ActorSettings(epochs=2), value=ONCE, potential=replace(ONCE, use_replay=False))


def test_the_work_of_a_phase_by_hand() -> None:
    work = phase_work(SETTINGS, SIZE, PhaseData(played=4, replayed=2, scored=5, steps=3), longest=100)
    # Read: 5 scored, 6 under the reference, 6 and 6 asked; trained: 2 * 6 by the actor, 6 and 4 by the critics.
    assert work.tokens == (23 + 22) * 300
    assert work.passes == (23 + 3 * 22) * 300
    assert work.operations == work.passes * 2 * (1_000 - 100 - 100 + 100 * 7)
    assert work.hours(rate=1e6) == pytest.approx(work.operations / 0.4e6 / 3600)


def test_final_states_are_asked_about_and_taught_to_the_potential_critic() -> None:
    data = PhaseData(played=4, replayed=2, scored=5, steps=3, final_states=True)
    work = phase_work(SETTINGS, SIZE, data, longest=100)
    # Both critics are asked about one state more of 6 episodes; the potential's, of the 4 played, learns it once.
    assert work.tokens == (23 + 22) * 300 + (2 * 6 + 4) * 100
    assert work.passes == (23 + 3 * 22) * 300 + (2 * 6 + 3 * 4) * 100
    webrl = replace(SETTINGS, algorithm="webrl")
    assert phase_work(webrl, SIZE, data, 100) == phase_work(webrl, SIZE, replace(data, final_states=False), 100)


def test_recomputing_and_a_copied_reference_cost_passes() -> None:
    data = PhaseData(played=4, replayed=0, scored=0, steps=1)
    adapted = replace(SETTINGS, adapters=AdapterSettings(rank=8))
    plain, again, copied, frozen = (
        phase_work(s, SIZE, data, 10).passes
        for s in (SETTINGS, replace(SETTINGS, recompute=True), replace(SETTINGS, reference="warm_start"), adapted)
    )
    assert again - plain == 10 * 4 * 4
    assert plain - frozen == 10 * 4 * 4
    assert copied - plain == 10 * 4


def test_check_tells_tokens_and_hours_at_the_rate_it_is_told() -> None:
    data, slow = phase_pace(load_recipe(LAPTOP), 0.01, measure=False)
    _, fast = phase_pace(load_recipe(LAPTOP), 0.1, measure=False)
    assert data.startswith("A phase, at most: 192 episodes of 20 steps, 2.46 M prompt tokens and 123 k new ones")
    hours = [float(line.split(" takes ")[1].split(" h ")[0]) for line in (slow, fast)]
    assert hours[0] == pytest.approx(10 * hours[1], rel=0.1)
    assert "(as said)" in slow
    _, two = phase_pace(load_recipe(LAPTOP, ["learner.ranks=2"]), 0.01, measure=False)
    assert float(two.split(" takes ")[1].split(" h ")[0]) == pytest.approx(hours[0] / 2, rel=0.1)
    assert two.endswith("on each of 2 ranks (as said).")


def test_check_measures_where_it_can_and_says_so_where_it_cannot() -> None:
    _, measured = phase_pace(load_recipe(LAPTOP), None, measure=True)
    assert "(measured here)" in measured
    _, absent = phase_pace(load_recipe(LAPTOP, ["learner.device=cuda:99"]), None, measure=True)
    assert absent.startswith("The learner's hours are not told")
    assert "--tflops" in absent


def test_nothing_is_measured_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_measured", lambda *_: pytest.fail("nothing to measure for"))
    _, advice = phase_pace(load_recipe(LAPTOP), None, measure=False)
    assert "--measure" in advice
    assert phase_pace(load_recipe(LAPTOP, ["learner.algorithm=sft"]), None, measure=True) == []
