"""The encyclopedia's task templates: looking up, following links, categories, histories, the reading list.

Owns instructions, parameters, evaluations and milestones; the pieces come from ``sampling``, ``checks``
and ``experts``.
"""

from __future__ import annotations

from records.episodes import Task
from sites import checks
from sites.old_form import Expert, Parameters, TaskTemplate, noting
from sites.wiki import checks as c
from sites.wiki import experts as e
from sites.wiki import sampling as s
from sites.wiki.data import Article, WikiData
from sites.wiki.pages import CATEGORIES_PER_PAGE, CHANGES_PER_PAGE

_EDITORS = r"(?<=\| )[A-Z][a-z]+(?= \|)"


def _article(p: Parameters, d: WikiData) -> Article:
    return d.articles[p["title"]]


def _namesake(p: Parameters, d: WikiData) -> Article:
    return d.articles[f"{p['name']} ({p['town']})"]


def _people(p: Parameters, d: WikiData) -> list[Article]:
    return [d.articles[p[name]] for name in ("first", "second", "third")]


def _first_born(p: Parameters, d: WikiData) -> Article:
    return min(_people(p, d), key=lambda person: int(person.facts["Born"]))


def _category_turns(p: Parameters, d: WikiData) -> int:
    """How often the pages of the list of categories must be turned."""
    return s.page_of(list(d.categories), p["category"], CATEGORIES_PER_PAGE)


def _history_turns(p: Parameters, d: WikiData) -> int:
    return (len(_article(p, d).history) - 1) // CHANGES_PER_PAGE


def _looking_up(p: Parameters, d: WikiData) -> checks.Milestones:
    article = _article(p, d)
    return checks.milestones(
        *c.beginning(), ("look something up", c.at("/wiki/*")), ("open the article", c.at(f"{article.path}*"))
    )


def _answer_fact(task: Task) -> Expert:
    p = task.parameters
    seen = yield from e.look_up(p["title"])
    if e.states(seen, p["fact"]):
        yield from e.finish(e.fact(seen, p["fact"]))
    else:
        yield from e.finish(checks.UNANSWERABLE)


def _answer_namesake(task: Task) -> Expert:
    p = task.parameters
    yield from e.look_up(p["name"])
    seen = yield from e.click(f"{p['name']} ({p['town']})", "link", rf"{p['name']} \(\w+\)")
    yield from e.finish(e.fact(seen, p["fact"]))


def _answer_behind(task: Task) -> Expert:
    p = task.parameters
    seen = yield from e.look_up(p["title"])
    seen = yield from e.click(e.fact(seen, p["role"].capitalize()), "link")
    yield from e.finish(e.fact(seen, p["fact"]))


def _name_first_editor(task: Task) -> Expert:
    seen = yield from e.look_up(task.parameters["title"])
    seen = yield from e.first_version(seen)
    yield from e.finish(e.first_editor(seen), _EDITORS)


def _read_later(task: Task) -> Expert:
    for name in ("first", "second"):
        yield from e.look_up(task.parameters[name])
        yield from e.click("Read later", "button")
    yield from e.finish(rivals=None)


def _count(task: Task) -> Expert:
    seen = yield from e.open_category(task.parameters["category"])
    yield from e.finish(seen.page_text.split(" articles since ")[0].split()[-1])


def _name_first_born(task: Task) -> Expert:
    born: dict[int, str] = {}
    note: str | None = None
    for name in ("first", "second", "third"):
        seen = yield from noting(note, e.look_up(task.parameters[name]))
        year, place = int(e.fact(seen, "Born")), e.fact(seen, "Birthplace")
        born[year], note = place, f"{year} {place}"
    yield from e.finish(born[min(born)])


def _find_oldest(task: Task) -> Expert:
    seen = yield from e.open_category(task.parameters["category"])
    years = []
    for number, title in enumerate(titles := e.members(seen)):
        seen = yield from e.click(title, "link")
        years.append(int(e.fact(seen, s.OPENED)))
        if number < len(titles) - 1:
            yield e.Intent("go_backward", note=str(years[-1]))
    yield from e.finish(str(min(years)))


def _oldest_milestones(p: Parameters, d: WikiData) -> checks.Milestones:
    first, *_, last = d.categories[p["category"]]
    return checks.milestones(
        ("see the categories", c.at("/categories*")),
        ("open the category", c.at(c.category_path(p["category"]))),
        ("open its first article", c.at(first.path)),
        ("open its last article", c.at(last.path)),
    )


TEMPLATES = (
    TaskTemplate(
        name="wiki.fact",
        site="wiki",
        intent="What does the encyclopedia say under {fact} about {title}?",
        sample=s.fact,
        evaluation=lambda p, d: checks.answer(_article(p, d).facts[p["fact"]]),
        milestones=_looking_up,
        expert=_answer_fact,
        horizon=2,
        require_login=False,
    ),
    TaskTemplate(
        name="wiki.missing_fact",
        site="wiki",
        intent="What does the encyclopedia say under {fact} about {title}?",
        sample=s.missing_fact,
        evaluation=lambda p, d: checks.no_answer("The article does not say this."),
        milestones=_looking_up,
        expert=_answer_fact,
        horizon=2,
        require_login=False,
    ),
    TaskTemplate(
        name="wiki.namesake",
        site="wiki",
        intent="What does the encyclopedia say under {fact} about the {name} in {town}?",
        sample=s.namesake,
        evaluation=lambda p, d: checks.answer(_namesake(p, d).facts[p["fact"]]),
        milestones=lambda p, d: checks.milestones(
            *c.beginning(),
            ("be asked which is meant", checks.both(c.at("/search*"), checks.has(_namesake(p, d).title, role="link"))),
            ("open the article", c.at(_namesake(p, d).path)),
        ),
        expert=_answer_namesake,
        horizon=3,
        require_login=False,
    ),
    TaskTemplate(
        name="wiki.person_behind",
        site="wiki",
        intent="What does the encyclopedia say under {fact} about the {role} of {title}?",
        sample=s.behind,
        evaluation=lambda p, d: checks.answer(s.person_behind(d, p).facts[p["fact"]]),
        milestones=lambda p, d: checks.milestones(
            *c.beginning(),
            ("open the article", c.at(_article(p, d).path)),
            ("open the article about the person", c.at(s.person_behind(d, p).path)),
        ),
        expert=_answer_behind,
        horizon=3,
        require_login=False,
    ),
    TaskTemplate(
        name="wiki.first_editor",
        site="wiki",
        intent="Who wrote the first version of the article {title}?",
        sample=s.any_article,
        evaluation=lambda p, d: checks.answer(_article(p, d).history[-1].editor),
        milestones=lambda p, d: checks.milestones(
            ("see a search box", checks.has("Search", role="searchbox")),
            ("open the article", c.at(f"{_article(p, d).path}*")),
            ("open its history", c.at(f"{_article(p, d).path}/history*")),
            (
                "see the first version",
                checks.both(c.at(f"{_article(p, d).path}/history*"), checks.shows("First version")),
            ),
        ),
        expert=_name_first_editor,
        horizon=lambda p, d: 3 + _history_turns(p, d),
        require_login=False,
    ),
    TaskTemplate(
        name="wiki.read_later",
        site="wiki",
        intent="Put the articles {first} and {second} on the reading list.",
        sample=s.two_articles,
        evaluation=lambda p, d: c.on_reading_list(d.articles[p["first"]], d.articles[p["second"]]),
        milestones=lambda p, d: checks.milestones(
            ("open the first article", c.at(d.articles[p["first"]].path)),
            ("put it on the list", c.put(d.articles[p["first"]])),
            ("open the second article", c.at(d.articles[p["second"]].path)),
            ("put it on the list, too", c.put(d.articles[p["second"]])),
        ),
        expert=_read_later,
        horizon=5,
        require_login=False,
    ),
    TaskTemplate(
        name="wiki.count_category",
        site="wiki",
        intent="How many articles are in the category {category}? Answer with a number.",
        sample=s.category,
        evaluation=lambda p, d: checks.answer(str(len(d.categories[p["category"]]))),
        milestones=lambda p, d: checks.milestones(
            ("start at the encyclopedia", c.at("/*")),
            ("see the categories", c.at("/categories*")),
            ("find the category", checks.both(c.at("/categories*"), checks.has(p["category"], role="link"))),
            ("open the category", c.at(c.category_path(p["category"]))),
        ),
        expert=_count,
        horizon=lambda p, d: 3 + _category_turns(p, d),
        require_login=False,
        split="validation",
    ),
    TaskTemplate(
        name="wiki.first_born",
        site="wiki",
        intent="Who was born first, {first}, {second} or {third}? Answer with the birthplace.",
        sample=s.three_people,
        evaluation=lambda p, d: checks.answer(_first_born(p, d).facts["Birthplace"]),
        milestones=lambda p, d: checks.milestones(
            ("see a search box", checks.has("Search", role="searchbox")),
            ("open the first article", c.at(_people(p, d)[0].path)),
            ("open the second article", c.at(_people(p, d)[1].path)),
            ("open the third article", c.at(_people(p, d)[2].path)),
        ),
        expert=_name_first_born,
        horizon=4,
        require_login=False,
        split="test",
    ),
    TaskTemplate(
        name="wiki.oldest",
        site="wiki",
        intent="In which year did the first place in the category {category} open?",
        sample=s.small_category,
        evaluation=lambda p, d: checks.answer(str(min(int(a.facts[s.OPENED]) for a in d.categories[p["category"]]))),
        milestones=_oldest_milestones,
        expert=_find_oldest,
        horizon=lambda p, d: 2 + _category_turns(p, d) + 2 * len(d.categories[p["category"]]),
        require_login=False,
        split="test",
    ),
)
"""Every template; ``TaskTemplate.split`` says what training sees."""
