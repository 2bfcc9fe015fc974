"""BrowserGym on the scripted pages, run by an interpreter that has it; see ``browser_steps``.

Imports nothing of this project. Reads a line of JSON on standard input (pages, episodes, whether tuned, the
browser), warms up, says ``ready``, and at the next line plays: each page ``episodes`` times, or all in turn for
``seconds``. Prints one line of JSON: milliseconds of steps and resets by page, and memory in MB.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import browsergym.core  # registers environments
import browsergym.core.env
import browsergym.miniwob  # registers environments
import gymnasium
import numpy as np
from playwright.sync_api import BrowserType

_FIND = "([css, nth]) => document.querySelectorAll(css)[nth].getAttribute('bid')"
_OPTION = "css => document.querySelector(css).options[0].label"


def main() -> None:
    """Answer one order."""
    order = json.loads(sys.stdin.readline())
    if order["tuned"]:
        browsergym.core.env.extract_screenshot = lambda page: np.zeros((1, 1, 3), dtype=np.uint8)
    _use_browser(order["executable"])
    environments = [_make(page, order) for page in order["pages"]]
    environments[0].reset(seed=7)
    memory_mb = _memory_mb()
    environments[0].unwrapped.close()
    _say("ready")
    sys.stdin.readline()
    _say(json.dumps(_play(environments, order) | {"memory_mb": memory_mb}))


def _use_browser(executable: str) -> None:
    """Let every browser be this one: the window for chat would ask for Playwright's own download."""
    launch = BrowserType.launch

    def with_executable(self: BrowserType, **options: Any) -> Any:
        return launch(self, **{"executable_path": executable, **options})

    BrowserType.launch = with_executable


def _make(page: dict[str, Any], order: dict[str, Any]) -> Any:
    how: dict[str, Any] = {"slow_mo": 0, "pre_observation_delay": 0.0} if order["tuned"] else {}
    if page["miniwob"]:
        os.environ["MINIWOB_URL"] = page["url"].rsplit("/", 1)[0] + "/"
        return gymnasium.make(f"browsergym/miniwob.{page['miniwob']}", **how)
    start = {"start_url": page["url"], "goal": "look around"}
    return gymnasium.make("browsergym/openended", task_kwargs=start, **how)


def _play(environments: list[Any], order: dict[str, Any]) -> dict[str, Any]:
    pages = order["pages"]
    steps: dict[str, list[float]] = {page["name"]: [] for page in pages}
    resets: dict[str, list[float]] = {page["name"]: [] for page in pages}
    started, played = time.monotonic(), 0
    errors: list[str] = []
    while played < order["episodes"] * len(pages) or time.monotonic() - started < order["seconds"]:
        number = played % len(pages)
        reset_ms, step_ms, wrong = _episode(environments[number], pages[number])
        resets[pages[number]["name"]].append(reset_ms)
        steps[pages[number]["name"]] += step_ms
        errors += wrong
        played += 1
        if order["seconds"] and time.monotonic() - started >= order["seconds"]:
            break
    return {"steps": steps, "resets": resets, "errors": errors, "seconds": time.monotonic() - started}


def _episode(env: Any, page: dict[str, Any]) -> tuple[float, list[float], list[str]]:
    """Return the milliseconds of the reset and of each step, and what was said of actions that failed."""
    start = time.perf_counter()
    env.reset(seed=7)
    reset_ms, step_ms, wrong = 1000 * (time.perf_counter() - start), [], []
    for press in page["actions"]:
        action = _action(env.unwrapped.page, press)
        start = time.perf_counter()
        seen, _, done, _, _ = env.step(action)
        step_ms.append(1000 * (time.perf_counter() - start))
        if seen["last_action_error"]:
            wrong.append(f"{page['name']}: {action}: {seen['last_action_error'][:120]}")
        if done:
            break
    # The browser is closed here, where it is not measured; as shipped a reset that follows would pay for it.
    env.unwrapped.close()
    return reset_ms, step_ms, wrong


def _action(page: Any, press: dict[str, Any]) -> str:
    if press["kind"] == "go_backward":
        return "go_back()"
    bid = page.evaluate(_FIND, [press["css"], press["nth"]])
    if press["kind"] == "type":
        return f"fill({bid!r}, {press['text']!r})"
    if press["kind"] == "select":
        return f"select_option({bid!r}, {page.evaluate(_OPTION, press['css'])!r})"
    return f"{press['kind']}({bid!r})"


def _memory_mb() -> float:
    """Return what this process's browsers hold while one page is open, in MB; shared memory is divided."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_text()
            if not ("--headless" in line or "--type=" in line) or not _is_ours(folder):
                continue
            rollup = (folder / "smaps_rollup").read_text().splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        total += sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) / 1024
    return total


def _is_ours(folder: Path) -> bool:
    pid = int(folder.name)
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if pid == os.getpid():
            return True
    return False


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
