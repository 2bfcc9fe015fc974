"""Which tasks change their sites."""

import json
from collections import Counter
from pathlib import Path

import pytest

from environments.webarena.leases.modes import changes_sites, site_modes
from environments.webarena.leases.units import Mode
from records.episodes import Task


def task(intent: str, *kinds: str, sites: tuple[str, ...] = ("shopping",), require_reset: bool = False) -> Task:
    evaluation = {"eval_types": list(kinds)}
    return Task("w.7", sites, intent, f"__{sites[0].upper()}__", evaluation, "w", require_reset=require_reset)


@pytest.mark.parametrize(
    ("intent", "kinds", "changes"),
    [
        ("What is the top-1 best-selling product in 2022", ["string_match"], False),
        ("Search for xbox", ["url_match"], False),
        ("Open my latest issue to check if it is closed", ["string_match", "url_match"], False),
        ("Post a notice on the forum", ["url_match", "program_html"], True),
        ("DisLike all submissions created by jacyanthis", ["string_match"], True),
        ("Delete: all negative reviews", ["string_match"], True),
    ],
)
def test_the_evaluators_and_the_first_word_tell(intent: str, kinds: list[str], changes: bool) -> None:
    assert changes_sites(task(intent, *kinds)) is changes


def test_a_task_that_asks_for_a_reset_changes_and_an_override_has_the_last_word() -> None:
    asks = task("What is it", "string_match", require_reset=True)
    assert changes_sites(asks)
    assert not changes_sites(asks, {"w.7": False})
    assert changes_sites(task("What is it", "string_match"), {"w.7": True})


def test_sites_without_accounts_are_only_ever_read() -> None:
    changing = task("Find it and post it", "program_html", sites=("map", "wikipedia", "reddit"))
    assert site_modes(changing) == {"map": Mode.READ, "wikipedia": Mode.READ, "reddit": Mode.WRITE}


def test_a_site_that_only_the_start_or_the_evaluators_name_is_needed_too() -> None:
    evaluation = {"eval_types": ["url_match"], "reference_url": "__REDDIT__/f/books"}
    found = Task("w.7", ("gitlab",), "Show it", "__MAP__ |AND| __GITLAB__", evaluation, "w")
    assert site_modes(found) == dict.fromkeys(("gitlab", "map", "reddit"), Mode.READ)


def test_the_published_tasks_divide_as_counted() -> None:
    """Of 812 tasks, those whose evaluators look at page contents change a site (but the map), and 14 others."""
    published = Path(__file__).parents[4] / "shared" / "webarena_lite" / "webarena_test.raw.json"
    if not published.is_file():
        pytest.skip("the published WebArena tasks are not beside this checkout")
    counts: Counter[str] = Counter()
    for raw in json.loads(published.read_text()):
        found = Task(str(raw["task_id"]), tuple(raw["sites"]), raw["intent"], raw["start_url"], raw["eval"], "w")
        inspected = "program_html" in raw["eval"]["eval_types"]
        writes = Mode.WRITE in site_modes(found).values()
        counts[f"{'inspected' if inspected else 'answered'} {'writes' if writes else 'reads'}"] += 1
        assert raw["require_reset"] is False
    assert sum(counts.values()) == 812
    assert counts == {"inspected writes": 384, "inspected reads": 27, "answered reads": 387, "answered writes": 14}
