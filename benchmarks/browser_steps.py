"""What does a browser step cost: Waymark, BrowserGym as shipped and tuned, and the floor, on the same pages?

Ten MiniWoB++ pages and the two largest embedded ones, scripted actions. First one episode after another in one
process (medians, 95th percentiles), then as many at once as each stack is run with on the given cores. BrowserGym
runs with the interpreter that ``--oracle`` names; tuned means without its slow motion, its sleep before each
observation and its screenshot. Resets of BrowserGym are without the end of the browser before.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import secrets
import select
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cores import browser_memory_mb, keep_to
from benchmarks.raw_devtools import RawPage
from benchmarks.recording import Recording, met, option_parser
from benchmarks.runs import ROOT, child_environment
from benchmarks.scripted_pages import SEED, Press, ScriptedPage, embedded_pages, miniwob_pages
from environments.addresses import EpisodeAddresses, embedded_bypass
from environments.browser import chromium
from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from environments.miniwob.page_server import PageServer, page_folder
from environments.miniwob.world import MiniwobWorld
from records.deadline import Deadline
from records.environment import Action
from sites.server import SiteServer

NAME = "browser_steps"
RATIO, SPEED, FLOOR = 15.0, 60.0, 1.2
_ANSWER_S = 1200.0
_START = f"Math.seedrandom('{SEED}'); core.EPISODE_MAX_TIME = 1e9; core.startEpisodeReal()"
_OPTIONS = "document.querySelector({css}).options[0].label"
_NUMBER = "window.__waymark.state.refs.indexOf(document.querySelectorAll({css})[{nth}])"


@dataclass
class Measured:
    """Milliseconds of steps and resets by page, how long all took, and the browsers' memory per context in MB."""

    steps: dict[str, list[float]] = field(default_factory=dict)
    resets: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    memory_mb: float = float("nan")
    errors: list[str] = field(default_factory=list)

    def add(self, page: str, reset_ms: float, step_ms: Sequence[float]) -> None:
        """Note one episode."""
        self.resets.setdefault(page, []).append(reset_ms)
        self.steps.setdefault(page, []).extend(step_ms)

    @property
    def count(self) -> int:
        """How many steps were made."""
        return sum(map(len, self.steps.values()))


Play = Callable[[ScriptedPage], Awaitable[tuple[float, list[float]]]]
"""Plays one episode in its slot; returns the milliseconds of the reset and of each step."""


def main() -> None:
    """Measure all stacks, print the table and write every time that was taken."""
    options = _options()
    recording = Recording(NAME, options.results)
    cores = keep_to(options.cores)
    pages = [*miniwob_pages(), *embedded_pages()]
    with ExitStack() as stack:
        games = stack.enter_context(closing(PageServer(page_folder())))
        games.start()
        sites = stack.enter_context(SiteServer())
        world = World(games.port, SiteEndpoint(sites.port, sites.secret))
        measured = {
            "Waymark": asyncio.run(_measure(world.waymark, pages, options)),
            "floor (raw DevTools)": asyncio.run(_measure(world.raw, pages, options)),
        }
        if options.oracle:
            plain = [page.plain(asyncio.run(world.address(page))) for page in pages]
            measured["BrowserGym tuned"] = _oracle(options, plain, tuned=True)
            measured["BrowserGym as shipped"] = _oracle(options, plain, tuned=False)
    rows = [row for name, (alone, together) in measured.items() for row in _rows(name, alone, together, pages)]
    columns = ["stack, pages", "ms/step", "p95", "ms/reset", "p95", "steps/s, one", "steps/s, all cores", "MB/context"]
    recording.table(f"Browser steps on {cores} cores", [*columns, "steps", "errors"], rows)
    recording.write({
        "cores_used": cores,
        "pages": [page.name for page in pages],
        "one": {name: vars(alone) for name, (alone, _) in measured.items()},
        "together": {name: vars(together) for name, (_, together) in measured.items()},
        "verdicts": _verdicts(measured),
    })  # fmt: skip


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--oracle", type=Path, help="interpreter that has browsergym-core and browsergym-miniwob")
    parser.add_argument("--episodes", type=int, default=12, help="episodes of each page, one after another")
    parser.add_argument("--oracle-episodes", type=int, default=2, help="the same for BrowserGym (as shipped: one)")
    parser.add_argument("--contexts", type=int, default=8, help="episodes at once in Waymark and the floor")
    parser.add_argument("--processes", type=int, default=4, help="processes of BrowserGym at once")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long all cores are measured")
    parser.add_argument("--cores", type=int, default=2, help="cores that this benchmark and its children may use")
    return parser.parse_args()


@dataclass(frozen=True)
class World:
    """Where the pages are, and how each stack that runs in this process opens a slot."""

    games_port: int
    sites: SiteEndpoint

    async def address(self, page: ScriptedPage) -> str:
        """Return a page's address, in a session of its own where it has state."""
        if page.miniwob:
            return f"http://miniwob.localhost:{self.games_port}/miniwob/{page.miniwob}.html"
        token = f"e{secrets.token_hex(8)}"
        await self.sites.open_session(token, page.task.sites, page.task.sites, Deadline(10.0))
        return EpisodeAddresses.embedded(page.task.sites, token, self.sites.port).real(page.task.start_url)

    @asynccontextmanager
    async def waymark(self, browser: BrowserProcess) -> AsyncIterator[Play]:
        """A slot of Waymark: an environment for each kind of page."""
        games = BrowserEnvironment(browser, MiniwobWorld(self.games_port))
        sites = BrowserEnvironment(browser, EmbeddedWorld(self.sites))

        async def play(page: ScriptedPage) -> tuple[float, list[float]]:
            env = games if page.miniwob else sites
            reset_ms, _ = await _timed(env.reset(page.task))
            steps = []
            for press in page.actions:
                took, seen = await _timed(env.step(await _action(env, press)))
                steps.append(took)
                if "ended the task" in (seen.feedback or ""):
                    break
            return reset_ms, steps

        try:
            yield play
        finally:
            await games.close()
            await sites.close()

    @asynccontextmanager
    async def raw(self, browser: BrowserProcess) -> AsyncIterator[Play]:
        """A slot of the floor: one page."""
        bypass = f"{embedded_bypass('*', self.sites.port)};*.localhost:{self.games_port};*.localhost:{self.sites.port}"
        context = await browser.open_context(bypass)
        raw = await RawPage.of(context)

        async def play(page: ScriptedPage) -> tuple[float, list[float]]:
            start = time.perf_counter()
            await raw.reset(await self.address(page), _START if page.miniwob else "")
            reset_ms = 1000 * (time.perf_counter() - start)
            return reset_ms, [(await _timed(raw.step(press)))[0] for press in page.actions]

        yield play
        await context.close()


async def _measure(
    slot: Callable[[BrowserProcess], Any], pages: Sequence[ScriptedPage], options: argparse.Namespace
) -> tuple[Measured, Measured]:
    """Measure a stack one episode after another, then many at once."""
    browser = BrowserProcess()
    alone, together = Measured(), Measured()
    try:
        async with AsyncExitStack() as stack:
            plays: list[Play] = [await stack.enter_async_context(slot(browser))]
            for page in pages:
                await plays[0](page)
            before = browser_memory_mb()
            started = time.monotonic()
            for page in [page for _ in range(options.episodes) for page in pages]:
                alone.add(page.name, *await plays[0](page))
            alone.seconds = time.monotonic() - started
            plays += [await stack.enter_async_context(slot(browser)) for _ in range(options.contexts - 1)]
            await asyncio.gather(*(play(page) for play in plays[1:] for page in pages[-1:]))
            started = time.monotonic()
            endings = [started + options.seconds] * len(plays)
            await asyncio.gather(
                *map(_loop, plays, itertools.count(), [pages] * len(plays), endings, [together] * len(plays))
            )
            together.seconds = time.monotonic() - started
            together.memory_mb = (browser_memory_mb() - before) / max(1, options.contexts - 1)
    finally:
        await browser.close()
    return alone, together


async def _loop(play: Play, first: int, pages: Sequence[ScriptedPage], end: float, measured: Measured) -> None:
    for number in itertools.count(first):
        page = pages[number % len(pages)]
        measured.add(page.name, *await play(page))
        if time.monotonic() >= end:
            return


async def _action(env: BrowserEnvironment, press: Press) -> Action:
    """Return the action in terms of the last observation; looks behind the interface, outside what is timed."""
    if press.kind == "go_backward":
        return Action(press.kind)
    number = await env.slot.tab.read(_NUMBER.format(css=json.dumps(press.css), nth=press.nth))
    assert env.pages.shown is not None
    argument = press.text or None
    if press.kind == "select":
        argument = str(await env.slot.tab.read(_OPTIONS.format(css=json.dumps(press.css))))
    return Action(press.kind, argument, env.pages.shown.targets.index(number))


async def _timed(work: Awaitable[Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    done = await work
    return 1000 * (time.perf_counter() - start), done


def _oracle(options: argparse.Namespace, pages: list[dict[str, Any]], tuned: bool) -> tuple[Measured, Measured]:
    """Run BrowserGym in one process, page by page, then in several at once."""
    order = {"pages": pages, "tuned": tuned, "executable": str(chromium.find()), "episodes": 0, "seconds": 0.0}
    episodes = options.oracle_episodes if tuned else 1
    alone = _answers(options.oracle, [order | {"episodes": episodes}])
    turned = [pages[i :: options.processes] + pages[:i] for i in range(options.processes)]
    together = _answers(options.oracle, [order | {"pages": p, "seconds": options.seconds} for p in turned])
    return alone, together


def _answers(interpreter: Path, orders: list[dict[str, Any]]) -> Measured:
    """Start a process for each order, let all begin at once, and put their answers together."""
    script = str(ROOT / "benchmarks" / "browser_steps_oracle.py")
    started = [
        subprocess.Popen([str(interpreter), script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, env=child_environment(PYTHONPATH=""))
        for _ in orders
    ]  # fmt: skip
    measured = Measured()
    try:
        for process, order in zip(started, orders, strict=True):
            _tell(process, json.dumps(order))
        for process in started:
            if _hear(process) != "ready":
                raise RuntimeError(f"{interpreter} cannot run BrowserGym; try: {interpreter} {script}")
        for process in started:
            _tell(process, "go")
        answers = [json.loads(_hear(process)) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    for answer in answers:
        for page, times in answer["steps"].items():
            measured.steps.setdefault(page, []).extend(times)
            measured.resets.setdefault(page, []).extend(answer["resets"][page])
        measured.errors += answer["errors"]
    measured.seconds = max(answer["seconds"] for answer in answers)
    measured.memory_mb = float(np.mean([answer["memory_mb"] for answer in answers]))
    return measured


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process says, '' when it has ended; one that says nothing is given up."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], _ANSWER_S)[0]:
        raise RuntimeError(f"process {process.pid} of BrowserGym said nothing for {_ANSWER_S:g} s")
    return process.stdout.readline().strip()


def _rows(name: str, alone: Measured, together: Measured, pages: Sequence[ScriptedPage]) -> list[list[object]]:
    rows: list[list[object]] = []
    for group, chosen in (
        ("MiniWoB++", [p for p in pages if p.miniwob]),
        ("embedded", [p for p in pages if not p.miniwob]),
    ):
        steps, resets = (np.concatenate([kind[p.name] for p in chosen]) for kind in (alone.steps, alone.resets))
        rows.append([
            f"{name}, {group}", float(np.median(steps)), float(np.percentile(steps, 95)), float(np.median(resets)),
            float(np.percentile(resets, 95)), 1000 / float(np.mean(steps)), together.count / together.seconds,
            together.memory_mb, len(steps), len(alone.errors + together.errors),
        ])  # fmt: skip
    return rows


def _verdicts(measured: dict[str, tuple[Measured, Measured]]) -> list[str]:
    """Say of each target whether it was met; the medians are over all pages, each page's median counting the same."""
    cost = {
        name: float(np.mean([np.median(times) for times in alone.steps.values()]))
        for name, (alone, _) in measured.items()
    }
    ours, together = cost["Waymark"], measured["Waymark"][1]
    speed, floor = together.count / together.seconds, ours / cost["floor (raw DevTools)"]
    found = [
        f"Steps per second on all cores, resets included: {speed:.0f}; target {SPEED:g} {met(speed >= SPEED)}",
        f"Times the floor's step: {floor:.2f}; target at most {FLOOR:g} {met(floor <= FLOOR)}",
    ]
    if "BrowserGym tuned" in cost:
        ratio = cost["BrowserGym tuned"] / ours
        found.append(
            f"Times faster than tuned BrowserGym in one process: {ratio:.1f}; target {RATIO:g} {met(ratio >= RATIO)}"
        )
    return found


if __name__ == "__main__":
    main()
