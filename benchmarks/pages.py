"""Do pages that others wrote read and work as they should? Real applications, audited, solved and timed.

Every application of ``benchmarks.applications`` that can be installed here is played through the environment
``webarena``: nothing is done on each task, then its expert plays it. On a second round each page that the expert comes
to is held against the audit's second opinion, and the same actions are done on the same pages by bare DevTools
(``raw_devtools``), which waits for nothing. Its time,
and that until the page on which it acted has changed for the last time, are the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from playwright.async_api import Error as PlaywrightError

from benchmarks.applications.application import Application
from benchmarks.applications.catalogue import APPLICATIONS
from benchmarks.applications.experts import EXPERTS
from benchmarks.applications.installing import NotInstalled, installed
from benchmarks.applications.playing import Move, play
from benchmarks.applications.serving import Serving
from benchmarks.applications.session import playing_on
from benchmarks.raw_devtools import RawPage
from benchmarks.recording import Recording, met, option_parser
from benchmarks.scripted_pages import Press
from environments.admission import AskedFor
from environments.browser.environment import BrowserEnvironment
from environments.browser.page_audit import PageAudit, compare
from environments.browser.page_opinion import second_opinion
from environments.browser.wire import Wire
from records.environment import Action, Observation
from records.episodes import Task
from records.failures import EpisodeFailed

NAME = "pages"
RECALL, PRECISION, WORDS, NAMES, FLOOR, TASKS = 0.98, 0.98, 0.99, 0.98, 2.0, 40
_MOST_LISTED = 12
_ELEMENT_S = 5.0
_STILL_S = 0.4
_RAW = ("click", "type", "hover", "right_click")
_PATH = """(() => {{
  let at = window.__waymark.state.refs[{number}];
  if (!at || at.getRootNode() !== document) return "";
  const parts = [];
  for (; at && at !== document.documentElement; at = at.parentElement) {{
    parts.unshift(`${{CSS.escape(at.localName)}}:nth-child(${{[...at.parentElement.children].indexOf(at) + 1}})`);
  }}
  return ["html", ...parts].join(" > ");
}})()"""


@dataclass
class Found:
    """What was found of one application. ``audits`` are of different pages; times are in milliseconds.

    ``waited`` are the steps that took as long as the limit of settling; ``pairs`` the times of one and the same action
    in Waymark, in bare DevTools, and until the page that bare DevTools acted on has changed for the last time.
    """

    made_with: str
    tasks: int = 0
    solved: int = 0
    idle: int = 0
    errors: list[str] = field(default_factory=list)
    audits: list[PageAudit] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    waited: list[str] = field(default_factory=list)
    pairs: list[tuple[float, float, float]] = field(default_factory=list)

    def share(self, found: str, of: str) -> float:
        """Return a share over all pages."""
        whole = sum(getattr(audit, of) for audit in self.audits)
        return sum(getattr(audit, found) for audit in self.audits) / whole if whole else float("nan")

    @property
    def shares(self) -> tuple[float, ...]:
        """Return recall, precision, names and word recall."""
        pairs = (("found", "usable"), ("right", "offered"), ("named", "elements"), ("words_shown", "words"))
        return tuple(self.share(*pair) for pair in pairs)

    @property
    def medians(self) -> tuple[float, float, float]:
        """Return the medians of ``pairs``."""
        ours, bare, still = np.median(np.array(self.pairs or [[np.nan] * 3]), axis=0)
        return float(ours), float(bare), float(still)


def main() -> None:
    """Play all applications, print the tables and write what was found."""
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(APPLICATIONS)}; none plays all")
    options = parser.parse_args()
    recording = Recording(NAME, options.results)
    found, missing = _play_all(options)
    columns = ["application", "tasks", "solved", "idle", "pages", "recall", "precision", "names", "words", "step ms",
               "bare ms", "still ms", "x still", "waited"]  # fmt: skip
    recording.table("Real applications", columns, [_row(name, one) for name, one in found.items()])
    for name, one in found.items():
        for line in one.errors + one.waited:
            recording.note(f"{name}: {line}")
    for name, why in missing.items():
        recording.note(f"{name} left out: {why}")
    verdicts = _verdicts(found)
    recording.write({
        "applications": {name: _numbers(one) for name, one in found.items()},
        "left_out": missing,
        "verdicts": verdicts,
    })  # fmt: skip


def _play_all(options: argparse.Namespace) -> tuple[dict[str, Found], dict[str, str]]:
    found, missing = {}, {}
    for name in options.names or APPLICATIONS:
        app = APPLICATIONS[name]
        started = time.monotonic()
        try:
            installed(app)
        except NotInstalled as error:
            missing[name] = str(error)
            continue
        found[name] = asyncio.run(_examine(app))
        print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
    return found, missing


async def _examine(app: Application) -> Found:
    found = Found(app.made_with)
    with Serving(app) as serving:
        async with playing_on(app, serving, idle=True) as (environment, tasks):
            found.tasks = len(tasks)
            for task in tasks:
                found.idle += int((await play(environment, task, ())).verdict.outcome)
        async with playing_on(app, serving) as (environment, tasks):
            assert isinstance(environment, AskedFor)
            assert isinstance(environment.env, BrowserEnvironment)
            for task, script in zip(tasks, EXPERTS[app.name], strict=True):
                try:
                    await _solve(environment, task, script, found)
                    await _audit(environment, environment.env, task, script, found)
                except (LookupError, EpisodeFailed) as error:
                    found.errors.append(f"{task.task_id}: {error}"[:1000])
    return found


async def _solve(environment: AskedFor, task: Task, script: Sequence[Move], found: Found) -> None:
    """Play a task by its expert, and note how long its steps take."""
    played = await play(environment, task, script)
    found.solved += int(played.verdict.outcome)
    if not played.verdict.outcome:
        found.errors.append(f"{task.task_id}: not solved: {'; '.join(played.verdict.evidence)}"[:1000])
    found.steps += played.step_ms
    assert isinstance(environment.env, BrowserEnvironment)
    limit_ms = 1000 * environment.env.slot.settings.settle_timeout_s
    for move, took in zip(script, played.step_ms, strict=False):
        if took >= limit_ms and move.kind != "wait":
            found.waited.append(f"{task.task_id}: {move.kind} {move.name}: {took:.0f} ms")


async def _audit(
    asking: AskedFor, browser: BrowserEnvironment, task: Task, script: Sequence[Move], found: Found
) -> None:
    """Play a task again: audit each page that is new, then do the same by bare DevTools."""
    known: set[str] = set()
    actions: list[tuple[Action, str, float]] = []
    seen = await asking.reset(task)
    for move in (*script, None):
        if seen.text not in known:
            known.add(seen.text)
            found.audits.append(await _look(browser, seen))
        if move is None or move.kind == "exit":
            break
        action = move.action(seen)
        css = await _path(browser, action)
        started = time.perf_counter()
        seen = await asking.step(action)
        actions.append((action, css, 1000 * (time.perf_counter() - started)))
    seen = await asking.reset(task)
    context = await browser.slot.browser.open_context(
        browser.slot.addresses.bypass, storage_state=await browser.slot.context.storage_state()
    )
    try:
        raw = await RawPage.of(context)
        await raw.reset(browser.slot.addresses.real(task.start_url), "")
        for action, css, ours in actions:
            if action.kind not in _RAW or not css or not await _there(raw, css):
                break
            await raw.watch()
            started = time.perf_counter()
            await raw.step(Press(action.kind, css, 0, action.argument or ""))
            bare = 1000 * (time.perf_counter() - started)
            found.pairs.append((ours, bare, max(bare, await raw.last_change_ms(_STILL_S))))
    except (PlaywrightError, RuntimeError, TimeoutError) as error:
        found.errors.append(f"{task.task_id}: the floor stopped: {str(error).splitlines()[0][:200]}")
    finally:
        await context.close()


async def _look(browser: BrowserEnvironment, seen: Observation) -> PageAudit:
    assert browser.pages.shown is not None
    opinion = await second_opinion(Wire(browser.slot.tab.page), browser.pages.shown.targets)
    return compare(seen.text, seen.elements, opinion)


async def _path(browser: BrowserEnvironment, action: Action) -> str:
    """Return a selector of an action's element, "" where there is none or it lies in a frame or a shadow tree."""
    if action.element_id is None:
        return ""
    assert browser.pages.shown is not None
    return str(await browser.slot.tab.read(_PATH.format(number=browser.pages.shown.targets[action.element_id])))


async def _there(raw: RawPage, css: str) -> bool:
    """Whether an element comes within a few seconds; bare DevTools does not wait for what a page asks of its server."""
    ends = time.monotonic() + _ELEMENT_S
    while time.monotonic() < ends:
        if await raw.has(css):
            return True
        await asyncio.sleep(0.02)
    return False


def _row(name: str, one: Found) -> list[object]:
    ours, bare, still = one.medians
    shares = (f"{share:.3f}" for share in one.shares)
    return [f"{name}: {one.made_with}", one.tasks, one.solved, one.idle, len(one.audits), *shares, ours, bare, still,
            ours / still, len(one.waited)]  # fmt: skip


def _numbers(one: Found) -> dict[str, Any]:
    recall, precision, names, words = one.shares
    kept = asdict(one) | {"recall": recall, "precision": precision, "names": names, "words": words}
    kept["audits"] = [
        {key: list(value)[:_MOST_LISTED] if isinstance(value, tuple) else value for key, value in asdict(audit).items()}
        for audit in one.audits
    ]
    return json.loads(json.dumps(kept)) | {"medians": one.medians}  # type: ignore[no-any-return]


def _verdicts(found: dict[str, Found]) -> list[str]:
    """Say of each target whether it was met; shares and medians are over all applications together."""
    every = Found("", audits=[audit for one in found.values() for audit in one.audits])
    every.pairs = [pair for one in found.values() for pair in one.pairs]
    recall, precision, names, words = every.shares
    solved, idle = sum(one.solved for one in found.values()), sum(one.idle for one in found.values())
    ours, bare, still = every.medians
    paired = float(np.median([ours / still for ours, _, still in every.pairs])) if every.pairs else float("nan")
    waited = sum(len(one.waited) for one in found.values())
    lines = [
        (f"Usable elements that are offered: {recall:.4f}; target at least {RECALL:g}", recall >= RECALL),
        (f"Offered elements that are usable: {precision:.4f}; target at least {PRECISION:g}", precision >= PRECISION),
        (f"Words that are read: {words:.4f}; target at least {WORDS:g}", words >= WORDS),
        (f"Elements with a name: {names:.4f}; target at least {NAMES:g}", names >= NAMES),
        (f"Tasks that experts solve: {solved}; target at least {TASKS}", solved >= TASKS),
        (f"Tasks that are solved by doing nothing: {idle}; target 0", idle == 0),
        (
            f"Median of a step's times the floor's on the same page: {paired:.2f}; target at most {FLOOR:g}",
            paired <= FLOOR,
        ),
        (f"Steps that waited for the settle limit: {waited}; target 0", waited == 0),
    ]
    told = [f"{line} {met(holds)}" for line, holds in lines]
    return [
        *told,
        f"Medians of steps: {ours:.0f} ms; bare DevTools {bare:.0f} ms, until its page stands still {still:.0f} ms",
    ]


if __name__ == "__main__":
    main()
