"""How many observations no longer show the page 0.7 s after they were taken?

Random actions over all embedded sites and thirty MiniWoB++ pages. After each step the page is left alone
for ``--wait`` seconds and looked at again; where the two texts differ the step did not wait long enough. An agent that
acts on such an observation acts on a page that is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from analysis.intervals import wilson
from benchmarks.recording import Recording, met, option_parser, percent
from benchmarks.scripted_pages import start_at
from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from environments.miniwob.page_server import PageServer, page_folder
from environments.miniwob.pages import PAGES
from environments.miniwob.tasks import SITE, make_task
from environments.miniwob.world import MiniwobWorld
from records.environment import Action, Observation
from records.episodes import Task
from sites.registry import SITES
from sites.server import SiteServer

NAME = "staleness"
TARGET = 0.01
_EPISODE_STEPS = 10
_WORDS = ("lamp", "3", "ann", "hello there", "")


@dataclass
class Counted:
    """Steps looked at twice, and those whose second look differed, by site; and a few of the differences."""

    steps: Counter[str] = field(default_factory=Counter)
    stale: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, str]] = field(default_factory=list)


def main() -> None:
    """Act, look twice, print the shares and write the differences."""
    options = _options()
    recording = Recording(NAME, options.results)
    with ExitStack() as stack:
        games = stack.enter_context(closing(PageServer(page_folder())))
        games.start()
        sites = stack.enter_context(SiteServer())
        counted = asyncio.run(_measure(games.port, SiteEndpoint(sites.port, sites.secret), options))
    rows = [[site, counted.steps[site], counted.stale[site], percent(counted.stale[site] / counted.steps[site])]
            for site in sorted(counted.steps)]  # fmt: skip
    steps, stale = sum(counted.steps.values()), sum(counted.stale.values())
    rows.append(["all", steps, stale, percent(stale / steps)])
    recording.table(f"Observations that differ {options.wait:g} s later", ["site", "steps", "stale", "%"], rows)
    verdicts = _verdicts(stale, steps)
    recording.write({
        "wait_s": options.wait,
        "steps": dict(counted.steps),
        "stale": dict(counted.stale),
        "share": stale / steps,
        "examples": counted.examples,
        "verdicts": verdicts,
    })  # fmt: skip


def _verdicts(stale: int, steps: int) -> list[str]:
    share, interval = stale / steps, wilson(stale, steps)
    found = f"{percent(share)} % of {steps} [{percent(interval.low)}, {percent(interval.high)}]"
    return [
        f"Observations that differ later: {found}; target under {100 * TARGET:g} % {met(share < TARGET)}",
        f"The same with its whole interval; target under {100 * TARGET:g} % {met(interval.high < TARGET)}",
    ]


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--steps", type=int, default=1000, help="random actions in all")
    parser.add_argument("--games", type=int, default=30, help="MiniWoB++ pages among the places")
    parser.add_argument("--wait", type=float, default=0.7, help="seconds before the second look")
    parser.add_argument("--contexts", type=int, default=6, help="episodes at once")
    parser.add_argument("--seed", type=int, default=0, help="seed of the actions")
    return parser.parse_args()


async def _measure(games_port: int, sites: SiteEndpoint, options: argparse.Namespace) -> Counted:
    """Play places in turn, in several contexts at once, until there are enough steps."""
    browser, counted = BrowserProcess(), Counted()
    places = itertools.cycle(_places(options.games))
    numbers = itertools.count()

    async def play() -> None:
        envs = {
            SITE: BrowserEnvironment(browser, MiniwobWorld(games_port)),
            "": BrowserEnvironment(browser, EmbeddedWorld(sites)),
        }
        while sum(counted.steps.values()) < options.steps:
            task, number = next(places), next(numbers)
            env = envs[SITE if task.sites == (SITE,) else ""]
            await _episode(env, task, random.Random(f"{options.seed}.{number}"), options, counted)
        for env in envs.values():
            await env.close()

    try:
        await asyncio.gather(*(play() for _ in range(options.contexts)))
    finally:
        await browser.close()
    return counted


def _places(games: int) -> list[Task]:
    """Return start pages: all sites, each as often as the others, among the MiniWoB++ pages."""
    pages = sorted(PAGES)
    chosen = [make_task(pages[i * len(pages) // games], i) for i in range(games)]
    sites = [start_at(f"__{site.upper()}__/") for site in SITES]
    return [task for i, page in enumerate(chosen) for task in (page, sites[i % len(sites)])]


async def _episode(
    env: BrowserEnvironment, task: Task, rng: random.Random, options: argparse.Namespace, counted: Counted
) -> None:
    """Act at random for a few steps, and look at each page twice."""
    seen, site = await env.reset(task), task.sites[0]
    for _ in range(_EPISODE_STEPS):
        if sum(counted.steps.values()) >= options.steps:
            return
        action = _random_action(rng, seen)
        seen = await env.step(action)
        if "ended the task" in (seen.feedback or ""):
            return
        counted.steps[site] += 1
        await asyncio.sleep(options.wait)
        # A look without an action, which the interface does not offer: its Wait action would settle the page again.
        later = await env.pages.look()
        if later.text != seen.text:
            counted.stale[site] += 1
            counted.examples.append(_difference(task, action, seen, later))
        seen = later


def _random_action(rng: random.Random, seen: Observation) -> Action:
    if not seen.elements or rng.random() < 0.08:
        return Action(rng.choice(["go_backward", "go_forward", "scroll_down"]))
    element = rng.choice(seen.elements)
    number = element.element_id
    if element.role in ("textbox", "searchbox"):
        return Action(rng.choice(["type", "search"]), rng.choice(_WORDS), number)
    if element.role == "select" and element.options:
        return Action("select", rng.choice(element.options), number)
    return Action(rng.choice(["click", "click", "click", "press_enter", "hover"]), None, number)


def _difference(task: Task, action: Action, seen: Observation, later: Observation) -> dict[str, str]:
    """Return what was done where, and the lines that only one of the two looks has."""

    def only(mine: Sequence[str], other: Sequence[str]) -> str:
        return " / ".join(line for line in mine if line not in other)[:200]

    before, after = seen.text.split("\n"), later.text.split("\n")
    what = f"{action.kind} {action.argument or ''} {action.element_id}"
    return {
        "task": task.task_id,
        "url": seen.url,
        "action": what,
        "gone": only(before, after),
        "new": only(after, before),
    }


if __name__ == "__main__":
    main()
