"""No call in the packages can wait for ever: what may block names a limit, or stands in a list with the reason.

Read from the source, so that it also holds for code that no test runs. Understands the calls by which Python, asyncio
and Ray wait; what is awaited through other names has its limit where it is defined.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "cluster")

WITHOUT_ARGUMENTS = {"wait", "join", "result", "communicate", "acquire", "get", "recv"}
"""Methods that wait for ever when nothing is given (``"".join(x)`` and ``{}.get(x)`` always have an argument)."""
NEEDS_TIMEOUT = {
    "ray.get", "ray.wait", "asyncio.wait", "subprocess.run", "subprocess.call", "subprocess.check_call",
    "subprocess.check_output", "urllib.request.urlopen", "socket.create_connection", "http.client.HTTPConnection",
    "http.client.HTTPSConnection",
}  # fmt: skip
"""Functions that wait for ever unless ``timeout`` is given."""
LIMITS = {"asyncio.timeout", "asyncio.timeout_at"}
"""Context managers under which everything is limited."""
LIMITING = {"asyncio.wait_for", "within"}
"""Functions whose argument is limited."""

ALLOWED = {
    "cluster/studies/processes.py: process.wait()": "a run of a study, whose waits have limits; stopping kills it",
    "cluster/studies/runs.py: made.result()": "the run that makes a seed's start",
    "cluster/studies/processes.py: making.result()": "the run that makes a seed's start, which began before",
    "cluster/studies/runs.py: future.result()": "a run of a study",
    "src/environments/browser/calls.py: asyncio.wait({working, crash}, return_when=asyncio.FIRST_COMPLETED)": (
        "it is called under a deadline"
    ),
    "src/environments/browser/calls.py: crashed.wait()": "it ends with the work beside it",
    "src/environments/browser/calls.py: working.result()": "of a task that is done",
    "src/environments/browser/page_watch.py: asyncio.wait({task})": "it has been cancelled",
    "src/policy/data_planes.py: sending.result()": "of a task that is done",
    "src/policy/data_planes.py: task.result()": "of a task that is done",
    "src/policy/vllm/inside/waymark_broadcast.py: work.wait()": "of work that is completed",
    "src/records/supervision.py: asyncio.wait(tasks)": "they have been cancelled",
    "src/rollout_workers/slots.py: self._free.get()": "episodes wait for a slot while others play, and these end",
    "src/rollout_workers/worker_group.py: result.get()": "a call's outcome that has arrived",
}
"""Calls that wait without a limit of their own, and why they end."""


def unlimited(source: str, name: str) -> Iterator[str]:
    """Yield each call in ``source`` that may wait for ever, as ``name: code``."""
    yield from _visit(_parsed(source), name, limited=False)


def _parsed(source: str) -> ast.AST:
    """Parse without a garbage collection in between, which can make Python 3.11's parser raise (CPython gh-106905)."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if collecting:
            gc.enable()


def _visit(node: ast.AST, name: str, limited: bool) -> Iterator[str]:
    if isinstance(node, ast.AsyncWith | ast.With):
        within = limited or any(_called(item.context_expr) in LIMITS for item in node.items)
        for item in node.items:
            yield from _visit(item, name, limited)
        for child in node.body:
            yield from _visit(child, name, within)
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        limited = False
    if isinstance(node, ast.Call):
        if not limited and _waits(node):
            yield f"{name}: {ast.unparse(node)}"
        limited = limited or _called(node) in LIMITING
    for child in ast.iter_child_nodes(node):
        yield from _visit(child, name, limited)


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def _waits(call: ast.Call) -> bool:
    given = {keyword.arg for keyword in call.keywords}
    if _called(call) in NEEDS_TIMEOUT:
        return "timeout" not in given
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return method in WITHOUT_ARGUMENTS and not call.args and not given


def _found() -> list[str]:
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            found += unlimited(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    return found


def test_whatever_may_block_names_a_limit() -> None:
    assert [call for call in _found() if call not in ALLOWED] == []


def test_no_exception_is_kept_for_code_that_is_gone() -> None:
    assert sorted(set(ALLOWED) - set(_found())) == []


@pytest.mark.parametrize(
    "code",
    [
        "ray.get(reference)", "ray.wait([a])", "thread.join()", "process.wait()", "future.result()", "await q.get()",
        "subprocess.run(['ls'])", "await asyncio.wait({task})", "lock.acquire()",
        "async with asyncio.timeout(3):\n        await f()\n    event.wait()",
    ],
)  # fmt: skip
def test_calls_that_wait_for_ever_are_found(code: str) -> None:
    assert len(list(unlimited(f"async def f():\n    {code}", "x"))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "ray.get(reference, timeout=3)", "thread.join(3)", "process.wait(timeout=3)", "', '.join(words)", "d.get(key)",
        "await asyncio.wait_for(event.wait(), 3)", "async with asyncio.timeout(3):\n        await event.wait()",
        "closing.wait(3)",
    ],
)  # fmt: skip
def test_calls_with_a_limit_are_left_alone(code: str) -> None:
    assert list(unlimited(f"async def f():\n    {code}", "x")) == []
