"""Who judges a recorded episode is told of refused actions, and of the page after the last one where it is recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from judges.llm.episode_text import actions_text, ending
from judges.of_milestones.autorater import Autorater
from judges.of_milestones.features import Features
from judges.settings import AutoraterSettings
from judges.trained.prompt import OutcomePrompt
from policy.tokenizer import TextTokenizer
from records.deadline import Deadline
from records.episodes import FinalState, Trajectory
from tests.judges.of_milestones.scripted_model import ScriptedModel
from tests.judges.of_milestones.test_autorater import TASK, said
from tests.judges.of_milestones.test_recorded import episode, step

TOKENIZER = Path(__file__).parents[2] / "cluster" / "recipes" / "tiny-cloned"
CLICK = step('do(action="Click", element="4")', "button Save", observation="@ Before\nbutton Save 4")
PLAIN = replace(episode(step("go_backward()"), CLICK), answer=None)
AFTER = FinalState("__SHOP__/saved", "@ After\nIt is saved", np.zeros(0, np.int32))
REFUSED = replace(PLAIN, steps=(PLAIN.steps[0], replace(CLICK, refused=True)))
KEPT = replace(PLAIN, final_state=AFTER)


class Letters:
    """An encoder of which every text is its letters, counted."""

    name = "letters"

    def encode(self, texts: list[str]) -> np.ndarray:
        counts = np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])
        return np.asarray(counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1), dtype=np.float32)


async def shown(played: Trajectory) -> list[dict[str, str]]:
    model = ScriptedModel(said(1, 1, 1))
    await Autorater(model, AutoraterSettings(model="m")).label(played, TASK, Deadline(5))
    states: list[dict[str, str]] = json.loads(str(model.asked[0].parts[0]))["states"]
    return states


async def test_the_autorater_is_shown_both() -> None:
    plain, refused, kept = [await shown(one) for one in (PLAIN, REFUSED, KEPT)]
    assert "refused" not in plain[1]
    assert refused[1]["refused"] == "by the page"
    assert "page" not in plain[2]
    assert (kept[2]["page"], kept[2]["address"]) == (AFTER.observation, AFTER.url)


def test_texts_of_episodes_tell_both() -> None:
    assert "refused" not in actions_text(PLAIN)
    assert "the page refused it, so that nothing was done" in actions_text(REFUSED)
    assert "Before" in ending(PLAIN)
    assert "After" in ending(KEPT)
    assert "Before" not in ending(KEPT)


@pytest.mark.parametrize(("played", "words"), [(REFUSED, "the page refused it"), (KEPT, "It is saved")])
def test_an_outcome_model_reads_both(played: Trajectory, words: str) -> None:
    tokenizer = TextTokenizer.load(TOKENIZER)
    prompt = OutcomePrompt(tokenizer, 500)
    assert words in tokenizer.decode(prompt.ids(played).tolist())
    assert words not in tokenizer.decode(prompt.ids(PLAIN).tolist())


def test_a_checkers_last_state_is_the_recorded_one() -> None:
    features, wanted = Features(Letters()), ["It is saved"]
    before, after = (features.of(one, wanted)[-1, 0, 0] for one in (PLAIN, KEPT))
    assert after == pytest.approx(1.0, abs=1e-3), "the page says what the milestone says"
    assert before < 0.99
