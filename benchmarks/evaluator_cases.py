"""Generated cases for evaluators: small tasks, answers and pages around what the rules can get wrong.

Owns the generators by rule. Invariants: a seed gives the same cases; a case is plain JSON, so that another
interpreter can judge it. A case has ``eval`` and ``intent`` (of the task), ``answer`` (None: never exited),
``at`` (the last page's address), ``pages`` (``{address: {locator: value}}``; a locator that is missing throws),
``prepared`` (the same after preparing scripts), ``members`` (GitLab's), ``orders`` and ``reviews`` (the shop's).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Case = dict[str, Any]
Generator = Callable[[random.Random], Case]

SHOP, FORUM, CODE = "http://shop.test:7770", "http://forum.test:9999", "http://code.test:8023"
TITLE = "document.querySelector('h1').outerText"
LINKS = "[...document.querySelectorAll('a')].map(a => a.href).join(' ')"
_VOCABULARY = (
    "yes no 0 1 5 10 12 2.5 1,299.50 $12 $12.00 5-star 3/4 n/a N/A none None true blue kettle Kettle KETTLE order "
    "it's can't don't cannot o'brien 10:30 am -7 +1 c++ 50% #12 & the of mr. end. 5. 10. 0. 3.5. done! (red) [x] "
    "\"quoted\" 'single' a.b@c.com x--y a_b ~5 ... * ; <b>bold</b> &amp; &lt; é ß 山田 Emma Lopez"
)
WORDS = tuple(_VOCABULARY.split())


def text(rng: random.Random, most: int = 5) -> str:
    """Return one to ``most`` words."""
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, most)))


def near(rng: random.Random, wanted: str) -> str:
    """Return an answer to ``wanted``: right, almost right, or wrong."""
    changes: tuple[Callable[[], str], ...] = (
        lambda: wanted,
        wanted.upper,
        lambda: f" {wanted}  ",
        lambda: f'"{wanted}"',
        lambda: f"'{wanted}'",
        lambda: f"\"'{wanted}'\"",
        lambda: f"{text(rng)} {wanted} {text(rng)}",
        lambda: f"{text(rng)} {wanted}.",
        lambda: f"It is {wanted}, {text(rng)}",
        lambda: f"{wanted}{rng.choice('0123s%.x')}",
        lambda: f"{rng.choice(WORDS)}/{wanted}",
        lambda: f"/{wanted}/{text(rng)}",
        lambda: f"{rng.choice('0123$-x')}{wanted}",
        lambda: wanted[: rng.randint(0, len(wanted))],
        lambda: text(rng),
        lambda: "",
    )
    return rng.choice(changes)()


def answered(references: dict[str, Any], answer: str | None, **more: Any) -> Case:
    """Return a case of string_match."""
    return {"eval": {"eval_types": ["string_match"], "reference_answers": references, **more}, "answer": answer}


def exact_answer(rng: random.Random) -> Case:
    """exact_match; one answer in twenty is missing."""
    wanted = rng.choice([text(rng), "N/A", ""])
    return answered({"exact_match": wanted}, None if rng.random() < 0.05 else near(rng, wanted))


def included_word(rng: random.Random) -> Case:
    """must_include with one reference of one word or sign, where whole words may count."""
    wanted = rng.choice([rng.choice(WORDS), rng.choice("01359x%$é")])
    return answered({"must_include": [wanted]}, near(rng, wanted))


def included_texts(rng: random.Random) -> Case:
    """must_include with several references, some with alternatives, rarely a lone string."""
    wanted = [text(rng, 2) for _ in range(rng.randint(2, 4))]
    if rng.random() < 0.3:
        wanted[0] += f" |OR| {text(rng, 2)}"
    joined = " ".join(near(rng, rng.choice(w.split(" |OR| "))) for w in wanted)
    return answered({"must_include": wanted[0] if rng.random() < 0.05 else wanted}, joined)


def excluded_answer(rng: random.Random) -> Case:
    """must_exclude."""
    wanted = [text(rng, 2) for _ in range(rng.randint(1, 3))]
    return answered({"must_exclude": wanted}, near(rng, rng.choice(wanted)))


def inequality(rng: random.Random, around: int) -> str:
    """Return one inequality, or two alternatives."""
    one = f"{rng.choice(['<', '>', '<=', '>=', '=='])}{rng.choice(['', ' '])}{around + rng.randint(-2, 2)}"
    return one if rng.random() < 0.7 else f"{one} |OR| {rng.choice('<>')} {around + rng.randint(-9, 9)}"


def number(rng: random.Random, around: int) -> str:
    """Return a number as a page or an answer may hold it."""
    forms = (
        f"{around}",
        f"{around:,}",
        f" {around} ",
        f"'{around}'",
        f"{around}.0",
        f"${around}",
        f"+{around}",
        "none",
    )
    return rng.choice([*forms[:4], *forms])


def required_answer(rng: random.Random) -> Case:
    """required_values."""
    around = rng.choice([0, 5, 300, 1200, -4])
    wanted = [inequality(rng, around) for _ in range(rng.randint(1, 2))]
    return answered({"required_values": wanted}, number(rng, around))


def one_of_answers(rng: random.Random) -> Case:
    """one_of."""
    wanted = [text(rng, 2) for _ in range(rng.randint(1, 4))]
    return answered({"one_of": wanted}, near(rng, rng.choice(wanted)))


def fuzzy_answer(rng: random.Random) -> Case:
    """fuzzy_match, sometimes beside must_include."""
    wanted = [text(rng, 2) for _ in range(rng.randint(1, 3))]
    references: dict[str, Any] = {"must_include": [text(rng, 1)]} if rng.random() < 0.2 else {}
    joined = rng.choice([" ", ", "]).join([near(rng, w) for w in wanted])
    return answered({**references, "fuzzy_match": wanted}, joined)


def unachievable(rng: random.Random) -> Case:
    """fuzzy_match N/A, which asks for the reason; sometimes after another rule."""
    reason = text(rng)
    references: dict[str, Any] = {"exact_match": text(rng, 1)} if rng.random() < 0.2 else {}
    answer = rng.choice(["N/A", "'n/a'", "N/A because", near(rng, reason), near(rng, reason), text(rng)])
    return answered({**references, "fuzzy_match": "N/A"}, answer, string_note=reason)


def address(rng: random.Random) -> str:
    """Return a page's address."""
    path = rng.choice(["", "/", "/cart", "/cart/", "/a/b", "/a/b/c", "/result/", "/x.html", "/f/books/12/title"])
    pairs = [f"{k}={rng.choice(['tea', 'green+tea', 'green%20tea', '1', '2', ''])}" for k in rng.sample("qpsz", 2)]
    query = "&".join(rng.sample(pairs, rng.choice([0, 0, 1, 2])))
    return rng.choice([SHOP, FORUM]) + path + (f"?{query}" if query else "") + rng.choice(["", "", "", "#top", "/"])


def visited(rng: random.Random, **note: str) -> Case:
    """url_match: the reference itself, something longer, another order of its query, or another page."""
    wanted = [address(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
    base, _, query = rng.choice(wanted).partition("?")
    turned = "&".join(reversed(query.split("&")))
    found = rng.choice([
        f"{base}?{query}" if query else base, base, f"{base}?{turned}", f"{base}?{query}&more=1", f"{base}/deeper",
        f"{base}/", f"{base}//", address(rng), address(rng),
    ])  # fmt: skip
    return {"eval": {"eval_types": ["url_match"], "reference_url": " |OR| ".join(wanted), **note}, "at": found}


def value(rng: random.Random, wanted: str) -> Any:
    """Return what a locator yields: mostly a text around ``wanted``, rarely another kind of value."""
    return rng.choice([None, True, False, 7, 0, ""]) if rng.random() < 0.1 else near(rng, wanted)


def page(required: dict[str, Any], found: Any, locator: str = TITLE, **more: Any) -> Case:
    """Return a case of program_html with one target on the last page."""
    target = {"url": "last", "locator": locator, "required_contents": required}
    pages = {f"{SHOP}/last": {locator: found}}
    return {"eval": {"eval_types": ["program_html"], "program_html": [target]}, "pages": pages, **more}


def exact_content(rng: random.Random) -> Case:
    """exact_match of what a locator yields."""
    wanted = rng.choice([text(rng), "None", "true", ""])
    return page({"exact_match": wanted}, value(rng, wanted))


def included_content(rng: random.Random) -> Case:
    """must_include in an element or a whole page, with alternatives."""
    wanted = [" |OR| ".join(text(rng, 2) for _ in range(rng.choice([1, 1, 2]))) for _ in range(rng.randint(1, 3))]
    parts = [near(rng, rng.choice(w.split(" |OR| "))) for w in wanted]
    if rng.random() < 0.5:
        return page({"must_include": wanted}, f"<html><p>{'</p><p>'.join(parts)}</p></html>", "")
    return page({"must_include": wanted}, value(rng, " ".join(parts)), rng.choice([TITLE, LINKS]))


def excluded_content(rng: random.Random) -> Case:
    """must_exclude in a page."""
    wanted = [text(rng, 2) for _ in range(rng.randint(1, 2))]
    return page({"must_exclude": wanted}, value(rng, rng.choice(wanted)))


def required_content(rng: random.Random) -> Case:
    """required_values of what a locator yields."""
    around = rng.choice([0, 5, 300, 1200])
    return page({"required_values": [inequality(rng, around)]}, number(rng, around))


def fuzzy_content(rng: random.Random) -> Case:
    """fuzzy_match of a page's content."""
    wanted = [text(rng, 2) for _ in range(rng.randint(1, 3))]
    return page({"fuzzy_match": wanted}, value(rng, ", ".join(near(rng, w) for w in wanted)))
