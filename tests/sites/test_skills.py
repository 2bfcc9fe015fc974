"""Skills: each ends where its check says that it ends, in every task that is built of it."""

from __future__ import annotations

import importlib
from collections import Counter

import pytest

from judges.milestones import check, validate
from records.environment import Observation
from sites.collections import COLLECTIONS
from sites.experts import Actions
from sites.registry import SITES
from sites.skills import Skill
from sites.tasks import generate, needs_browser
from tests.sites.player import play

WITH_SKILLS = ("shop", "forum", "admin", "code", "map", "wiki")


@pytest.fixture
def done(monkeypatch) -> Counter[str]:
    """How often each skill was played to its end, where its check is looked at."""
    counts: Counter[str] = Counter()

    def checked(skill: Skill, *args, **kwargs) -> Actions:
        seen: Observation = yield from skill.act(*args, **kwargs)
        wanted = skill.reached(*args, **kwargs)
        validate(wanted)
        assert check(wanted, seen, []), f"{skill.__qualname__}{args}{kwargs}: expected {wanted}, found {seen.text}"
        counts[f"{skill.__module__}.{skill.__qualname__}"] += 1
        return seen

    monkeypatch.setattr(Skill, "__call__", checked)
    return counts


async def test_the_check_of_every_skill_holds_where_the_skill_is_done(app, done):
    for task in generate(13, (*SITES, *COLLECTIONS), per_template=1):
        if not needs_browser(task):
            assert (await play(app, task)).outcome == 1.0, task.intent
    rooms = [importlib.import_module(f"sites.{site}.skills") for site in WITH_SKILLS]
    skills = [value for room in rooms for value in vars(room).values() if isinstance(value, Skill)]
    known = {f"{skill.__module__}.{skill.__qualname__}" for skill in skills}
    assert known - set(done) == set()
