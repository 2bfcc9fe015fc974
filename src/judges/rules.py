"""WebArena's matching rules for strings and URLs, as named and versioned sets of pure functions.

Owns ``RuleSet`` and the registry ``RULE_SETS``. Two dialects of these rules are in use and give other
verdicts on the same run: the original WebArena harness (``webarena``) and the overlay that came with
WebArena-Lite (``webarena_lite``). A rule set's behaviour never changes under its version: a changed rule
is a new version, and both stand in a verdict's evidence. No I/O here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

OR = " |OR| "
GOLD_IN_PRED = "GOLD in PRED"
EXACT = "EXACT"

# Words keep a leading hyphen ("-79.9") and inner hyphens, dots, commas, colons and slashes ("5-star", "1,299.50");
# every other sign stands alone. This is how a Penn-style tokenizer splits short answers; contractions are left whole.
_TOKEN = re.compile(r"(?:(?<!\w)-)?\w+(?:[-.,:/']\w+)*|[^\w\s]")


class RuleError(ValueError):
    """A task file asks for something that no rule knows, or in a form that cannot be read."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The points on which WebArena's dialects differ.

    ``strip``: white space around answers is ignored. ``token_length``: the longest single-token reference
    that must match a whole token instead of a substring (1 character in WebArena, any in the overlay; 0 =
    never). ``tokens_in_pages``: this also holds for page contents. ``default_url_note``: the URL rule where
    a task names none. ``split_urls``: GOLD in PRED compares the address and each query parameter apart,
    otherwise it is a plain substring. ``unescape_html``: entities in page contents are decoded first.
    ``answer_alternatives``: " |OR| " is understood in must_include of answers. ``join_references``:
    several fuzzy references are one question to the judge instead of one each.
    """

    name: str
    version: int
    strip: bool
    token_length: int | None
    tokens_in_pages: bool
    default_url_note: str
    split_urls: bool
    unescape_html: bool
    answer_alternatives: bool
    join_references: bool

    @property
    def label(self) -> str:
        """Name and version as written into evidence, e.g. ``webarena/1``."""
        return f"{self.name}/{self.version}"

    def clean(self, text: str) -> str:
        """Strip (if the rule set does), take one pair of enclosing quotes off, lower the case."""
        text = text.strip() if self.strip else text
        for quote in ("'", '"'):
            if text.startswith(quote) and text.endswith(quote):
                text = text[1:-1]
                break
        return text.lower()

    def exact_match(self, reference: str, found: str) -> bool:
        """Whether both are the same after cleaning."""
        return self.clean(reference) == self.clean(found)

    def must_include(self, reference: str, found: str, *, whole_token: bool) -> bool:
        """Whether ``found`` contains ``reference``.

        With ``whole_token`` a reference of one token, no longer than ``token_length``, must be a token of
        its own: the answer "10 days" does not include "0".
        """
        reference, found = self.clean(reference), self.clean(found)
        short = self.token_length is None or len(reference) <= self.token_length
        if whole_token and short and len(tokens(reference)) == 1:
            return reference in tokens(found)
        return reference in found

    def page_includes(self, reference: str, content: str) -> bool:
        """Whether a page's content includes one of the alternatives in ``reference`` (separated by " |OR| ")."""
        return any(self.must_include(r, content, whole_token=self.tokens_in_pages) for r in reference.split(OR))

    def answer_includes(self, reference: str, answer: str, *, only: bool) -> bool:
        """Whether an answer includes ``reference``; ``only`` says that it is the task's only reference."""
        if self.answer_alternatives:
            return any(self.must_include(r, answer, whole_token=True) for r in reference.split(OR))
        return self.must_include(reference, answer, whole_token=only)

    def url_match(self, reference: str, found: str, note: str | None) -> bool:
        """Whether the URL ``found`` meets ``reference`` (alternatives by " |OR| ") under the task's ``url_note``.

        Raises:
            RuleError: for a note other than ``GOLD in PRED`` and ``EXACT``.
        """
        note = note or self.default_url_note
        alternatives = [url.rstrip("/") for url in reference.split(OR)]
        found = found.rstrip("/")
        if note == EXACT:
            return found in alternatives
        if note != GOLD_IN_PRED:
            raise RuleError(f"url_note: expected {GOLD_IN_PRED!r} or {EXACT!r}, found {note!r}; correct the task file")
        if not self.split_urls:
            return any(url in found for url in alternatives)
        return _address_and_query_match(alternatives, found)


def tokens(text: str) -> list[str]:
    """Split into words and single signs; inner hyphens, dots and the like stay in their word."""
    return _TOKEN.findall(text)


def _address_and_query_match(alternatives: list[str], found: str) -> bool:
    """Compare addresses by containment and, for every query key of any alternative, one of its values."""
    address, query = _split(found)
    wanted: dict[str, set[str]] = {}
    addresses = []
    for url in alternatives:
        other_address, other_query = _split(url)
        addresses.append(other_address)
        for key, values in other_query.items():
            wanted.setdefault(key, set()).update(values)
    return any(a in address for a in addresses) and all(
        values.intersection(query.get(key, ())) for key, values in wanted.items()
    )


def _split(url: str) -> tuple[str, dict[str, list[str]]]:
    """Return the address (host and path, no closing slash) and the query's values by key."""
    parts = urlsplit(url)
    return (parts.netloc + parts.path).rstrip("/"), parse_qs(parts.query)


WEBARENA = RuleSet(
    name="webarena",
    version=1,
    strip=True,
    token_length=1,
    tokens_in_pages=False,
    default_url_note=GOLD_IN_PRED,
    split_urls=True,
    unescape_html=True,
    answer_alternatives=False,
    join_references=False,
)

WEBARENA_LITE = RuleSet(
    name="webarena_lite",
    version=1,
    strip=False,
    token_length=None,
    tokens_in_pages=True,
    default_url_note=EXACT,
    split_urls=False,
    unescape_html=False,
    answer_alternatives=True,
    join_references=True,
)

RULE_SETS: dict[str, RuleSet] = {rules.name: rules for rules in (WEBARENA, WEBARENA_LITE)}


def rule_set(name: str) -> RuleSet:
    """Return the rule set ``name``; raise ``ValueError`` naming those that exist."""
    if name not in RULE_SETS:
        raise ValueError(f"rule set: expected one of {sorted(RULE_SETS)}, found {name!r}; set judges.rules to one")
    return RULE_SETS[name]
