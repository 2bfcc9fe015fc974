"""WebArena's matching rules for strings and URLs, as named and versioned sets of pure functions.

Owns ``RuleSet`` and the registry ``RULE_SETS``. Three dialects of these rules are in use and give other
verdicts on the same run: the original WebArena harness (``webarena``), the overlay that came with
WebArena-Lite (``webarena_lite``), and what BrowserGym made of that overlay
(``webarena_lite_browsergym``). A rule set's behaviour never changes under its version: a changed rule is a
new version, and both stand in a verdict's evidence. No I/O here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlsplit

from judges.quantities import meets, whole_number
from judges.rule_errors import RuleError
from judges.tokens import has_token, tokens

OR = " |OR| "
GOLD_IN_PRED = "GOLD in PRED"
EXACT = "EXACT"
_CANONICAL = re.compile(r"__[a-z0-9_]+__(?![^/?#])")


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The points on which WebArena's dialects differ.

    ``strip``: white space around answers is ignored. ``token_length``: the longest single-token reference
    that must match a whole token instead of a substring (1 character in WebArena, any in the overlay; 0 =
    never). ``tokens_in_pages``: this also holds for page contents. ``between_slashes``: what stands between
    the slashes of a token counts as a token too where a text must be included (``/images/NAME.jpg`` includes
    ``NAME.jpg``), not where it must be excluded. ``default_url_note``: the URL rule where
    a task names none. ``split_urls``: GOLD in PRED compares the address and each query parameter apart,
    otherwise it is a plain substring. ``all_slashes``: every closing slash of an address is
    ignored, not only one. ``unescape_html``: entities in page contents are decoded first.
    ``answer_alternatives``: " |OR| " is understood in must_include of answers. ``join_references`` and
    ``join_in_pages``: several fuzzy references for an answer, or for a page's content, are one question to
    the judge instead of one each.
    """

    name: str
    version: int
    strip: bool
    token_length: int | None
    tokens_in_pages: bool
    between_slashes: bool
    default_url_note: str
    split_urls: bool
    all_slashes: bool
    unescape_html: bool
    answer_alternatives: bool
    join_references: bool
    join_in_pages: bool

    @property
    def label(self) -> str:
        """Name and version as written into evidence, e.g. ``webarena/3``."""
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
        return self._holds(reference, found, whole_token=whole_token, between_slashes=self.between_slashes)

    def page_includes(self, reference: str, content: str) -> bool:
        """Whether a page's content includes one of the alternatives in ``reference`` (separated by " |OR| ")."""
        return any(self.must_include(r, content, whole_token=self.tokens_in_pages) for r in reference.split(OR))

    def must_exclude(self, reference: str, found: str) -> bool:
        """Whether ``found`` lacks ``reference``: a short one as a token of its own, any other one as a substring."""
        return not self._holds(reference, found, whole_token=True, between_slashes=False)

    def required_value(self, inequalities: str, found: str) -> bool:
        """Whether ``found`` is a whole number that meets one of the inequalities (separated by " |OR| ").

        Quotes are not taken off here: answers come cleaned, pages do not.
        """
        value = whole_number(found)
        met = [meets(value or 0, inequality) for inequality in inequalities.split(OR)]
        return value is not None and any(met)

    def one_of(self, references: list[str], found: str) -> bool:
        """Whether ``found`` contains one of the references, as a part of a word too."""
        found = self.clean(found)
        return any(self.clean(reference) in found for reference in references)

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
        alternatives = [self._address(url) for url in reference.split(OR)]
        found = self._address(found)
        if note == EXACT:
            return found in alternatives
        if note != GOLD_IN_PRED:
            raise RuleError(f"url_note: expected {GOLD_IN_PRED!r} or {EXACT!r}, found {note!r}; correct the task file")
        if not self.split_urls:
            return any(url in found for url in alternatives)
        return _address_and_query_match(alternatives, found)

    def _holds(self, reference: str, found: str, *, whole_token: bool, between_slashes: bool) -> bool:
        """Whether ``found`` has ``reference`` in it, both cleaned."""
        reference, found = self.clean(reference), self.clean(found)
        if whole_token and self._is_token(reference):
            return has_token(found, reference, between_slashes=between_slashes)
        return reference in found

    def _is_token(self, reference: str) -> bool:
        """Whether a cleaned reference is one that must match a token of its own.

        A canonical address is none: the real one, which it stands for, is several tokens.
        """
        short = self.token_length is None or len(reference) <= self.token_length
        return short and len(tokens(reference)) == 1 and not _CANONICAL.match(reference)

    def _address(self, url: str) -> str:
        return url.rstrip("/") if self.all_slashes else url.removesuffix("/")


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
    """Return the address (host and path) and the query's values by key."""
    parts = urlsplit(url)
    return parts.netloc + parts.path, parse_qs(parts.query)


WEBARENA = RuleSet(
    name="webarena",
    version=3,
    strip=True,
    token_length=1,
    tokens_in_pages=False,
    between_slashes=False,
    default_url_note=GOLD_IN_PRED,
    split_urls=True,
    all_slashes=True,
    unescape_html=True,
    answer_alternatives=False,
    join_references=False,
    join_in_pages=False,
)

WEBARENA_LITE = RuleSet(
    name="webarena_lite",
    version=3,
    strip=False,
    token_length=None,
    tokens_in_pages=True,
    between_slashes=True,
    default_url_note=EXACT,
    split_urls=False,
    all_slashes=False,
    unescape_html=False,
    answer_alternatives=True,
    join_references=True,
    join_in_pages=True,
)

WEBARENA_LITE_BROWSERGYM = replace(
    WEBARENA, name="webarena_lite_browsergym", version=2, unescape_html=False, join_in_pages=True
)

RULE_SETS: dict[str, RuleSet] = {rules.name: rules for rules in (WEBARENA, WEBARENA_LITE, WEBARENA_LITE_BROWSERGYM)}
"""Every rule set by its name."""
