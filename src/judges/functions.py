"""The named functions that WebArena's task files call in ``func:name('argument')``.

Owns the registry and the parser of such calls. A call is parsed against a white list (one known name,
string arguments) and never evaluated. Functions that only need a page are here; those that need a site's
own interface and credentials are made by ``shop_functions`` for the environment that has them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from judges.interface import PageView
from judges.rule_errors import RuleError
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

PageFunction = Callable[[PageView, tuple[str, ...]], Awaitable[str]]
PREFIX = "func:"
LAST_URL = "__last_url__"
PAGE = "__page__"


async def reddit_get_post_url(page: PageView, arguments: tuple[str, ...]) -> str:
    """Return the address of the post that a URL ``…/f/FORUM/POST/…`` belongs to, else the URL as it is."""
    url = only_argument(arguments)
    parts = urlsplit(url)
    # A canonical URL (``__REDDIT__/f/…``) has no scheme: its first path segment is the host.
    host = f"{parts.scheme}://{parts.netloc}" if parts.netloc else parts.path.split("/")[0]
    segments = parts.path.split("/")
    if len(segments) < 4 or segments[1] != "f":
        return url
    return f"{host}/f/{segments[2]}/{segments[3]}/"


async def gitlab_get_project_memeber_role(page: PageView, arguments: tuple[str, ...]) -> str:
    """Return the role shown beside an account on GitLab's members page, "" where it is not listed (sic: the name)."""
    account = only_argument(arguments)
    handle = json.dumps(f"@{account}")
    return await page.content_text(
        "[...document.querySelectorAll(\"td[data-label='Account'] span.gl-avatar-labeled-sublabel\")]"
        f".find(label => label.outerText === {handle})"
        "?.closest('tr')?.querySelector('td.col-max-role span')?.outerText"
    )


def only_argument(arguments: tuple[str, ...]) -> str:
    """Return the one argument of a function; raise ``RuleError`` for none or several."""
    if len(arguments) != 1:
        raise RuleError(f"func: expected one argument, found {arguments!r}; correct the task file")
    return arguments[0]


FUNCTIONS: Mapping[str, PageFunction] = {
    "reddit_get_post_url": reddit_get_post_url,
    "gitlab_get_project_memeber_role": gitlab_get_project_memeber_role,
}


def parse_call(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse ``func:name('a', …)`` into its name and string arguments; ``__page__`` is dropped.

    Raises:
        RuleError: for anything but one plain call with string arguments.
    """
    expected = f"expected func:name('argument', …) with string arguments, found {text!r}; correct the task file"
    try:
        call = ast.parse(text.removeprefix(PREFIX).strip(), mode="eval").body
    except SyntaxError as error:
        raise RuleError(expected) from error
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords):
        raise RuleError(expected)
    arguments = []
    for node in call.args:
        if isinstance(node, ast.Name) and node.id == PAGE:
            continue
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            raise RuleError(expected)
        arguments.append(node.value)
    return call.func.id, tuple(arguments)


async def call(text: str, page: PageView, last_url: str, functions: Mapping[str, PageFunction]) -> str:
    """Run the function that ``text`` names; ``__last_url__`` in an argument stands for ``last_url``.

    Raises:
        EpisodeFailed: ``task/unknown_function`` where no such function is registered.
    """
    name, arguments = parse_call(text)
    if name not in functions:
        detail = f"expected one of {sorted(functions)}, found {name!r}; pass it in ``functions`` of the evaluation"
        raise EpisodeFailed(Failure(codes.UNKNOWN_FUNCTION, detail))
    return await functions[name](page, tuple(a.replace(LAST_URL, last_url) for a in arguments))
