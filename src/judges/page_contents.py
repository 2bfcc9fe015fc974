"""WebArena's evaluator ``program_html``: what pages hold after the episode.

Owns the reading of its targets: which page, which part of it, what must be there. Invariants: locators and
preparing scripts run in the page, never in Python; ``func:`` names resolve through the registry that was
passed in; targets with an address are opened on a page of their own, and "last" always means the page on
which the episode ended.
"""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from judges import functions as page_functions
from judges.findings import RULES, Findings
from judges.functions import PageFunction
from judges.interface import PageView, PreparedPageView
from judges.rule_errors import RuleError, text

LAMBDA = "lambda:"
_EXPRESSIONS = ("document.", "[...document.")


async def program_html(
    targets: object,
    findings: Findings,
    *,
    last: PageView,
    fresh_page: Callable[[], Awaitable[PageView]],
    functions: Mapping[str, PageFunction],
) -> None:
    """Check every target of a task's ``program_html``; ``fresh_page`` is called at most once.

    Raises:
        RuleError: for targets that cannot be read.
        EpisodeFailed: whatever the pages raise, and ``task/unknown_function``.
    """
    if not isinstance(targets, (list, tuple)) or not targets:
        raise RuleError(f"program_html: expected a non-empty list of targets, found {targets!r}")
    last_url, other = await last.url(), None
    for target in targets:
        if not isinstance(target, Mapping) or not {"url", "locator", "required_contents"} <= set(target):
            raise RuleError(f"program_html: expected url, locator and required_contents, found {target!r}")
        url = text(target["url"])
        if url.startswith(page_functions.PREFIX):
            url = await page_functions.call(url, last, last_url, functions)
        page = last
        if url != "last":
            page = other = other or await fresh_page()
            await page.open(url)
        _check(target, await _content(page, target, last_url, functions), findings)


async def _content(
    page: PageView, target: Mapping[str, Any], last_url: str, functions: Mapping[str, PageFunction]
) -> str | None:
    """Return the text that a target's locator selects on ``page``, None where a ``lambda:`` finds nothing."""
    locator = text(target["locator"]).strip()
    if not locator:
        return await page.content_text("")
    if locator.startswith(page_functions.PREFIX):
        return await page_functions.call(locator, page, last_url, functions)
    if locator.startswith(LAMBDA):
        return await page.content_text(f"({locator.removeprefix(LAMBDA).strip()})() || ''") or None
    if not locator.startswith(_EXPRESSIONS):
        raise RuleError(f"locator: expected '', 'document.…', 'lambda:…' or 'func:…', found {locator!r}")
    prepare = page.prepare if isinstance(page, PreparedPageView) else page.content_text
    for script in target.get("prep_actions") or ():
        await prepare(text(script))
    return await page.content_text(locator)


def _check(target: Mapping[str, Any], content: str | None, findings: Findings) -> None:
    """Hold ``content`` against the first rule that the target names, as WebArena does."""
    required, rules = target["required_contents"], findings.rules
    if not isinstance(required, Mapping):
        raise RuleError(f"required_contents: expected an object, found {required!r}")
    named = [rule for rule in RULES if rule in required]
    if not named:
        raise RuleError(f"required_contents: expected one of {', '.join(RULES)}, found {sorted(required)}")
    rule, where = named[0], f"program_html {target['url']} {target['locator']}".rstrip()
    if content is None:
        findings.add(False, f"{where} {rule}", required[rule], None)
        return
    found = html.unescape(content) if rules.unescape_html else content
    findings.check(
        rule,
        required[rule],
        found,
        includes=lambda reference: rules.page_includes(reference, found),
        where=where,
        shown=None if target["locator"].strip() else f"a page of {len(content)} characters",
        joined=rules.join_in_pages,
    )
