"""The trained checker: it learns from known milestones, says the same again from its file, and never takes back."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from judges.contract import check_judge
from judges.kinds import Judges
from judges.of_milestones.checker import (
    CheckerFile,
    Known,
    MilestoneChecker,
    load_checker,
    save_checker,
    train_checker,
)
from judges.of_milestones.encoder import encoder_named
from judges.of_milestones.features import FEATURES, Features
from records.deadline import Deadline
from records.episodes import Milestone, Task
from records.labels import LabelSubject, misfit
from tests.judges.of_milestones.test_recorded import episode, step

SAID = ("The cart is open", "The order is placed")
PAGES = {
    "home": ("@ Shop\nlink Cart 0\nlink Home 1", "__SHOP__/"),
    "cart": ("@ Your cart\nbutton Place order 0\nlink Home 1", "__SHOP__/cart"),
    "placed": ("@ Order placed\nThank you, the order is placed.\nlink Home 0", "__SHOP__/placed"),
}


def known(*names: str, template: str = "shop.buy") -> Known:
    steps = [step('do(action="Click", element="0")', "link Cart", *PAGES[name]) for name in names]
    reached = np.array([["cart" in names[: t + 1], "placed" in names[: t + 1]] for t in range(len(names))])
    played = replace(episode(*steps), template=template, episode_id="-".join(names))
    return Known(played, SAID, np.vstack([reached, reached[-1:]]))


EPISODES = [
    known("home", "cart", "placed"), known("home", "home"), known("home", "cart"), known("home", "home", "cart"),
    known("home", "cart", "cart", "placed"), known("home", "home", "home"),
]  # fmt: skip


@cache
def trained() -> tuple[CheckerFile, Features]:
    features = Features(encoder_named())
    return train_checker(EPISODES, features), features


def test_it_learns_when_milestones_are_reached() -> None:
    checker = MilestoneChecker(*trained())
    fresh = known("home", "home", "cart", "placed", "home")
    said = checker.probabilities(fresh.episode, SAID) >= trained()[0].decision_threshold
    assert said.tolist() == fresh.reached.tolist()


def test_what_it_says_never_falls() -> None:
    checker = MilestoneChecker(*trained())
    said = checker.probabilities(known("cart", "home", "placed", "home").episode, SAID)
    assert (np.diff(said, axis=0) >= 0).all()
    assert said.shape == (5, 2)


async def test_its_file_says_the_same_again_and_labels_are_of_its_checksum(tmp_path: Path) -> None:
    save_checker(trained()[0], tmp_path)
    checker = load_checker(tmp_path)
    one = known("home", "cart")
    assert np.allclose(
        checker.probabilities(one.episode, SAID), MilestoneChecker(*trained()).probabilities(one.episode, SAID)
    )
    task = Task("t", ("shop",), "Buy it", "__SHOP__/", {}, "t", milestones=tuple(Milestone(s, {}) for s in SAID))
    label = await checker.label(one.episode, task, Deadline(5))
    assert not misfit(label, one.episode, LabelSubject.MILESTONES)
    assert (label.judge, len(label.prompt), label.decision_threshold) == (
        "milestone_checker", 64, trained()[0].decision_threshold
    )  # fmt: skip
    await check_judge(checker)


def test_it_names_what_it_was_trained_on() -> None:
    assert trained()[0].templates == ("shop.buy",)
    assert len(trained()[0].weights) == len(FEATURES) + len(FEATURES) * (len(FEATURES) + 1) // 2 + 1


@pytest.mark.parametrize("damage", ["", "[]", '{"version": 1}', None])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str | None) -> None:
    path = save_checker(trained()[0], tmp_path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "features": ["others"]}) if damage is None else damage)
    with pytest.raises(ValueError, match="milestones train|train it anew"):
        load_checker(tmp_path)


def test_nothing_is_learned_where_all_or_nothing_is_reached() -> None:
    with pytest.raises(ValueError, match="some that are not, found 0"):
        train_checker([known("home", "home")], Features(encoder_named()))


def test_a_recipe_names_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"judges.milestone_checker.folder"):
        Judges().of_episodes("milestone_checker")
    save_checker(trained()[0], tmp_path)
    judges = Judges({"milestone_checker": {"folder": str(tmp_path)}})
    assert judges.of_episodes("milestone_checker").subject is LabelSubject.MILESTONES
