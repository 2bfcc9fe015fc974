"""Tasks about articles: looking up, following links, categories, histories, the reading list."""

from __future__ import annotations

from sites.checks import UNANSWERABLE, Evaluation, Milestones, answer, both, has, no_answer, shows
from sites.experts import Expert, Intent
from sites.skills import click, finish, noting
from sites.task_template import TaskTemplate, drawn, together
from sites.wiki import sampling, skills
from sites.wiki.article_pages import CATEGORIES_PER_PAGE, CHANGES_PER_PAGE
from sites.wiki.checks import BEGINNING, SEARCH_BOX, at, category_path, on_reading_list
from sites.wiki.data import WikiData

_EDITORS = r"(?<=\| )[A-Z][a-z]+(?= \|)"


class _Reading(TaskTemplate):
    """A family: nobody logs in to the encyclopedia."""

    require_login = False


class Fact(_Reading, name="wiki.fact", horizon=2):
    intent = "What does the encyclopedia say under {fact} about {title}?"
    fact: str = together(sampling.fact)
    title: str

    def evaluation(self, data: WikiData) -> Evaluation:
        return answer(data.articles[self.title].facts[self.fact])

    def milestones(self, data: WikiData) -> Milestones:
        path = data.articles[self.title].path
        return *BEGINNING, ("look something up", at("/wiki/*")), ("open the article", at(f"{path}*"))

    def expert(self) -> Expert:
        seen = yield from skills.look_up(self.title)
        said = skills.states(seen, self.fact)
        yield from finish(skills.fact(seen, self.fact) if said else UNANSWERABLE, skills.YEARS)


class MissingFact(Fact, name="wiki.missing_fact", horizon=2):
    fact: str = together(sampling.missing_fact)

    def evaluation(self, data: WikiData) -> Evaluation:
        return no_answer("The article does not say this.")


class Namesake(_Reading, name="wiki.namesake", horizon=3):
    intent = "What does the encyclopedia say under {fact} about the {name} in {town}?"
    fact: str = together(sampling.namesake)
    name_: str
    town: str

    @property
    def title(self) -> str:
        return f"{self.name_} ({self.town})"

    def evaluation(self, data: WikiData) -> Evaluation:
        return answer(data.articles[self.title].facts[self.fact])

    def milestones(self, data: WikiData) -> Milestones:
        return (
            *BEGINNING,
            ("be asked which is meant", both(at("/search*"), has(self.title, role="link"))),
            ("open the article", at(data.articles[self.title].path)),
        )

    def expert(self) -> Expert:
        yield from skills.look_up(self.name_)
        seen = yield from click(self.title, "link", rf"{self.name_} \(\w+\)")
        yield from finish(skills.fact(seen, self.fact), skills.YEARS)


class PersonBehind(_Reading, name="wiki.person_behind", horizon=3):
    intent = "What does the encyclopedia say under {fact} about the {role} of {title}?"
    fact: str = together(sampling.behind)
    role: str
    title: str

    def evaluation(self, data: WikiData) -> Evaluation:
        return answer(data.person_behind(self.title, self.role).facts[self.fact])

    def milestones(self, data: WikiData) -> Milestones:
        return (
            *BEGINNING,
            ("open the article", at(data.articles[self.title].path)),
            ("open the article about the person", at(data.person_behind(self.title, self.role).path)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.look_up(self.title)
        seen = yield from click(skills.fact(seen, self.role.capitalize()), "link")
        yield from finish(skills.fact(seen, self.fact), skills.YEARS)


class FirstEditor(_Reading, name="wiki.first_editor"):
    intent = "Who wrote the first version of the article {title}?"
    title: str = drawn(sampling.title)

    def evaluation(self, data: WikiData) -> Evaluation:
        return answer(data.articles[self.title].history[-1].editor)

    def milestones(self, data: WikiData) -> Milestones:
        path = data.articles[self.title].path
        return (
            SEARCH_BOX,
            ("open the article", at(f"{path}*")),
            ("open its history", at(f"{path}/history*")),
            ("see the first version", both(at(f"{path}/history*"), shows("First version"))),
        )

    def expert(self) -> Expert:
        yield from skills.look_up(self.title)
        seen = yield from skills.first_version()
        yield from finish(skills.first_editor(seen), _EDITORS)

    def steps(self, data: WikiData) -> int:
        return 3 + (len(data.articles[self.title].history) - 1) // CHANGES_PER_PAGE


class ReadLater(_Reading, name="wiki.read_later", horizon=5):
    intent = "Put the articles {first} and {second} on the reading list."
    first: str = together(sampling.two_titles)
    second: str

    def evaluation(self, data: WikiData) -> Evaluation:
        return on_reading_list(self.first, self.second)

    def milestones(self, data: WikiData) -> Milestones:
        return (
            ("open the first article", at(data.articles[self.first].path)),
            ("put it on the list", skills.read_later.reached(self.first)),
            ("open the second article", at(data.articles[self.second].path)),
            ("put it on the list, too", skills.read_later.reached(self.second)),
        )

    def expert(self) -> Expert:
        yield from skills.read_later(self.first)
        yield from skills.read_later(self.second)


class CountCategory(_Reading, name="wiki.count_category", split="validation"):
    intent = "How many articles are in the category {category}? Answer with a number."
    category: str = drawn(sampling.category)

    def evaluation(self, data: WikiData) -> Evaluation:
        return answer(str(len(data.categories[self.category])))

    def milestones(self, data: WikiData) -> Milestones:
        return (
            ("start at the encyclopedia", at("/*")),
            ("see the categories", at("/categories*")),
            ("find the category", both(at("/categories*"), has(self.category, role="link"))),
            ("open the category", skills.open_category.reached(self.category)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.open_category(self.category)
        yield from finish(seen.page_text.split(" articles since ")[0].split()[-1], skills.YEARS)

    def steps(self, data: WikiData) -> int:
        return 3 + data.category_page(self.category, CATEGORIES_PER_PAGE)


class FirstBorn(_Reading, name="wiki.first_born", horizon=4, split="test"):
    intent = "Who was born first, {first}, {second} or {third}? Answer with the birthplace."
    first: str = together(sampling.three_people)
    second: str
    third: str

    @property
    def people(self) -> tuple[str, str, str]:
        return self.first, self.second, self.third

    def evaluation(self, data: WikiData) -> Evaluation:
        eldest = min((data.articles[person].facts for person in self.people), key=lambda facts: int(facts["Born"]))
        return answer(eldest["Birthplace"])

    def milestones(self, data: WikiData) -> Milestones:
        return (
            SEARCH_BOX,
            ("open the first article", at(data.articles[self.first].path)),
            ("open the second article", at(data.articles[self.second].path)),
            ("open the third article", at(data.articles[self.third].path)),
        )

    def expert(self) -> Expert:
        born: dict[int, str] = {}
        note: str | None = None
        for person in self.people:
            seen = yield from noting(note, skills.look_up(person))
            year, place = int(skills.fact(seen, "Born")), skills.fact(seen, "Birthplace")
            born[year], note = place, f"{year} {place}"
        yield from finish(born[min(born)], skills.YEARS)


class Oldest(_Reading, name="wiki.oldest", split="test"):
    intent = "In which year did the first place in the category {category} open?"
    category: str = drawn(sampling.small_category)

    def evaluation(self, data: WikiData) -> Evaluation:
        return answer(str(min(int(place.facts[sampling.OPENED]) for place in data.categories[self.category])))

    def milestones(self, data: WikiData) -> Milestones:
        first, *_, last = data.categories[self.category]
        return (
            ("see the categories", at("/categories*")),
            ("open the category", at(category_path(self.category))),
            ("open its first article", at(first.path)),
            ("open its last article", at(last.path)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.open_category(self.category)
        years: list[int] = []
        titles = skills.members(seen)
        for title in titles:
            seen = yield from click(title, "link")
            years.append(int(skills.fact(seen, sampling.OPENED)))
            if title != titles[-1]:
                yield Intent("go_backward", note=str(years[-1]))
        yield from finish(str(min(years)), skills.YEARS)

    def steps(self, data: WikiData) -> int:
        turns = data.category_page(self.category, CATEGORIES_PER_PAGE)
        return 2 + turns + 2 * len(data.categories[self.category])
