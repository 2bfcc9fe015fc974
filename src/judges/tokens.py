"""How texts are split into words where a short reference is looked for as a word of its own.

Owns ``tokens`` and ``has_token``. The splitting follows the conventions of the Penn Treebank, which WebArena's
harness uses through NLTK: signs stand alone, what holds a number or a name together ("1,299.50", "5-star",
"10:30", "n/a") stays, contractions are cut ("it's" gives "it" and "'s"). Two differences are meant: a full stop at
the end of a word is always a token of its own, where NLTK asks a trained model whether a sentence ends there, and
so is an apostrophe before a sign ("'-7'").
"""

from __future__ import annotations

import re

_SIGNS = r";@#$%&?!*\[\](){}<>«»“”„‘’\""
_CLITIC = r"'(?:ll|re|ve|s|m|d)"
_OPENING = r"(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)"
_TOKEN = re.compile(
    rf"""
      \.{{2,}} | --          # dots and dashes in a row
    | `+ | ''                # quotation marks of the Treebank itself
    | [{_SIGNS}]
    | {_CLITIC}(?=$|[{_SIGNS}:,.]) | n't(?=$|[{_SIGNS}:,.])
    | \.(?=[\])}}>"'»”’]*$)  # a full stop that ends the word
    | [:,](?!\d)
    | '(?!\w) | {_OPENING}    # an apostrophe that belongs to no word
    | (?: [a-mo-zA-MO-Z0-9_]++   # no token but a word begins with these
        | (?! \.{{2,}} | -- | ` | '' | [:,](?!\d)
            | {_CLITIC}(?=$|[{_SIGNS}:,.]) | n't(?=$|[{_SIGNS}:,.])
            | \.(?=[\])}}>"'»”’]*$)
            | '(?=$|[{_SIGNS}:,.]) | {_OPENING}(?=\w) )
          [^{_SIGNS}] )+
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TWO_WORDS = re.compile(r"(can)(not)|(gim|lem)(me)|(gon|wan)(na)|(got)(ta)", re.IGNORECASE)


def tokens(text: str) -> list[str]:
    """Split ``text`` into words and signs."""
    found: list[str] = []
    for chunk in text.split():
        for token in _TOKEN.findall(chunk):
            two = _TWO_WORDS.fullmatch(token)
            found += [part for part in two.groups() if part] if two else [token]
    return found


def has_token(text: str, token: str, *, between_slashes: bool = False) -> bool:
    """Whether ``token`` is one of the tokens of ``text``, or one of the parts that slashes divide a token into.

    Only what surrounds it is split, for a page is long.
    """
    for chunk in text.split():
        if token in chunk:
            found = tokens(chunk)
            if token in found or (between_slashes and any(token in word.split("/") for word in found)):
                return True
    return False
