"""What a task file may ask for at most: its size and depth, the addresses in it, and the functions that it may name.

Owns the limits and their checks. Task files come from elsewhere: what goes beyond these is told when the file is read,
not by an episode that opens the address or calls the function. Each check raises ``ValueError`` with what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath

from environments.addresses import EpisodeAddresses
from environments.webarena.login.accounts import Accounts
from environments.webarena.sites.addresses import SITES
from environments.webarena.sites.http_client import site_functions
from judges.functions import PREFIX, parse_call
from judges.rule_errors import RuleError
from records.deadline import Deadline
from records.placeholders import placeholder

AND = " |AND| "
"""What stands between the addresses of several tabs."""
MAX_BYTES = 64 * 2**20
MAX_DEPTH = 16
MAX_TABS = 8
MAX_NUMBER = 10**9
MAX_PIXELS = 10_000
_MAX_CALL = 1000
_REST = re.compile(r"(?:[/?#][^\s\x00-\x1f]*)?")
_FUNCTIONS = frozenset(site_functions(EpisodeAddresses({}), Accounts({}), Deadline()))


def check_address(text: str, names: Sequence[str] = SITES) -> str:
    """Return an address on one of the sites called ``names``, such as ``__SHOPPING__/cart``."""
    stripped = text.strip()
    start = next((found for found in map(placeholder, names) if stripped.startswith(found)), None)
    if start is None or not _REST.fullmatch(stripped.removeprefix(start)):
        raise ValueError("an address on one of the sites, such as __SHOPPING__/cart, without another scheme or host")
    return text


def check_tabs(text: str, names: Sequence[str] = SITES) -> str:
    """Return the addresses of the tabs that are open at the start, with `` |AND| `` between them."""
    tabs = text.split(AND.strip())
    if len(tabs) > MAX_TABS:
        raise ValueError(f"the addresses of at most {MAX_TABS} tabs")
    for tab in tabs:
        check_address(tab, names)
    return text


def check_call(text: str) -> str:
    """Return a call of a registered function, such as ``func:reddit_get_post_url('__last_url__')``."""
    try:
        name, _ = parse_call(text) if len(text) <= _MAX_CALL else ("", ())
    except RuleError as error:
        raise ValueError("func:name('argument', …) with string arguments") from error
    if name not in _FUNCTIONS:
        raise ValueError(f"a call of {', '.join(sorted(_FUNCTIONS))} in at most {_MAX_CALL} characters")
    return text


def check_target(text: str, names: Sequence[str] = SITES) -> str:
    """Return where a page is judged: ``last``, an address, or a call."""
    if text == "last":
        return text
    return check_call(text) if text.startswith(PREFIX) else check_address(text, names)


def check_state_file(text: str) -> str:
    """Return the name of a storage-state file; Waymark opens none, others do."""
    paths = (PurePosixPath(text), PureWindowsPath(text))
    if any(path.is_absolute() or path.drive or ".." in path.parts for path in paths):
        raise ValueError("a path under the working folder, such as ./.auth/shopping_state.json")
    return text


def check_depth(value: object) -> None:
    """Raise where lists and objects are nested too deep; does not recurse itself."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (
                parent.values() if isinstance(parent, Mapping) else parent if isinstance(parent, list) else ()
            )
        ]
        if not level:
            return
    raise ValueError(f"lists and objects nested at most {MAX_DEPTH} deep")
