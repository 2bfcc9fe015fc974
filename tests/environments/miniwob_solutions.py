"""Scripted solutions of MiniWoB++ pages: what a careful person does, reading the instruction and the page only."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

from records.environment import Action, Observation

Solution = Generator[Action, Observation, None]
"""Yields actions and is sent what is there after each."""

Solver = Callable[[str, Observation], Solution]
"""Takes the instruction and the first observation."""


def quoted(goal: str) -> list[str]:
    return re.findall(r'"([^"]*)"', goal)


def on(seen: Observation, kind: str, name: str, argument: str | None = None, *, role: str | None = None) -> Action:
    return Action(kind, argument, seen.find(name, role).element_id)


def nth(seen: Observation, kind: str, role: str, number: int = 0, argument: str | None = None) -> Action:
    return Action(kind, argument, [e for e in seen.elements if e.role == role][number].element_id)


def named_button(goal: str, seen: Observation) -> Solution:
    yield on(seen, "click", quoted(goal)[0], role="button")


def only_button(goal: str, seen: Observation) -> Solution:
    yield nth(seen, "click", "button")


def checkboxes(goal: str, seen: Observation) -> Solution:
    wanted = re.fullmatch(r"Select (.*) and click Submit\.", goal)
    assert wanted
    for name in wanted[1].split(", "):
        if name != "nothing":
            seen = yield on(seen, "click", name)
    yield on(seen, "click", "Submit")


def choose_list(goal: str, seen: Observation) -> Solution:
    wanted = re.fullmatch(r"Select (.*) from the list and click Submit\.", goal)
    assert wanted
    seen = yield nth(seen, "select", "select", 0, wanted[1])
    yield on(seen, "click", "Submit")


def scroll_list(goal: str, seen: Observation) -> Solution:
    wanted = re.fullmatch(r"Select (.*) from the scroll list and click Submit\.", goal)
    assert wanted
    for name in wanted[1].split(", "):
        seen = yield on(seen, "click", f"add {name}")
    yield on(seen, "click", "Submit")


def enter_text(goal: str, seen: Observation) -> Solution:
    seen = yield nth(seen, "type", "textbox", 0, quoted(goal)[0])
    yield on(seen, "click", "Submit")


def enter_password(goal: str, seen: Observation) -> Solution:
    seen = yield nth(seen, "type", "textbox", 0, quoted(goal)[0])
    seen = yield nth(seen, "type", "textbox", 1, quoted(goal)[0])
    yield on(seen, "click", "Submit")


def login(goal: str, seen: Observation) -> Solution:
    user, password = quoted(goal)
    seen = yield nth(seen, "type", "textbox", 0, user)
    seen = yield nth(seen, "type", "textbox", 1, password)
    yield on(seen, "click", "Login")


def tab(goal: str, seen: Observation) -> Solution:
    yield on(seen, "click", re.findall(r"Tab #\d", goal)[0], role="link")


def link(goal: str, seen: Observation) -> Solution:
    yield on(seen, "click", quoted(goal)[0])


def link_behind_tabs(goal: str, seen: Observation) -> Solution:
    for name in ("Tab #1", "Tab #2", "Tab #3"):
        seen = yield on(seen, "click", name, role="link")
        if any(e.name == quoted(goal)[0] for e in seen.elements):
            yield on(seen, "click", quoted(goal)[0])
            return


def link_behind_sections(goal: str, seen: Observation) -> Solution:
    for name in ("Section #1", "Section #2", "Section #3"):
        if not any(e.name == quoted(goal)[0] for e in seen.elements):
            seen = yield on(seen, "click", name)
    yield on(seen, "click", quoted(goal)[0])


def search_engine(goal: str, seen: Observation) -> Solution:
    place = int(re.findall(r"the (\d)\w\w search result", goal)[0])
    seen = yield nth(seen, "type", "textbox", 0, quoted(goal)[0])
    seen = yield on(seen, "click", "Search")
    for _ in range((place - 1) // 3):
        seen = yield on(seen, "click", ">")
    yield nth(seen, "click", "link", (place - 1) % 3)


def social_media(goal: str, seen: Observation) -> Solution:
    found = re.fullmatch(r'For the user (@\w+), click on the "(.*)" button\.', goal)
    assert found
    user, wanted = found.groups()
    lines = seen.text.split("\n")
    start = next(i for i, line in enumerate(lines) if i > 1 and f" {user} " in line)
    buttons = [line for line in lines[start + 1 :] if re.match(r"clickable|button", line)]
    if wanted.lower() in ("reply", "retweet", "like"):
        yield Action("click", None, int(next(b for b in buttons if f" {wanted.lower()} " in b).split()[-1]))
        return
    seen = yield Action("click", None, int(next(b for b in buttons if " more " in b).split()[-1]))
    yield Action("click", None, next(e.element_id for e in seen.elements if e.name.startswith(wanted)))


def email(goal: str, seen: Observation) -> Solution:
    name = re.findall(r"email by (\w+)", goal)[0]
    place = next(e.element_id for e in seen.elements if e.name.startswith(f"{name} "))
    seen = yield Action("click", None, place)
    if "trash" in goal or "star" in goal:
        yield on(seen, "click", "trash" if "trash" in goal else "star")
    elif "forward" in goal:
        seen = yield on(seen, "click", "Forward")
        seen = yield nth(seen, "type", "textbox", 0, re.findall(r"to (\w+)\.", goal)[0])
        yield on(seen, "click", "send-forward")
    else:
        seen = yield on(seen, "click", "Reply")
        seen = yield nth(seen, "type", "textbox", 0, quoted(goal)[0])
        yield on(seen, "click", "send-reply")


def date(goal: str, seen: Observation) -> Solution:
    month, day, _ = re.findall(r"\d+", goal)
    seen = yield nth(seen, "click", "textbox")
    for _ in range(12 - int(month)):
        seen = yield on(seen, "click", "Prev")
    seen = yield on(seen, "click", str(int(day)))
    yield on(seen, "click", "Submit")


def autocomplete(goal: str, seen: Observation) -> Solution:
    start, *end = quoted(goal)
    seen = yield nth(seen, "type", "textbox", 0, start)
    fits = [e.name for e in seen.elements if e.role == "clickable" and e.name.endswith(end[0] if end else "")]
    seen = yield on(seen, "click", fits[0])
    yield on(seen, "click", "Submit")


def arithmetic(goal: str, seen: Observation) -> Solution:
    one, sign, other = re.findall(r"(\d+) ([-+x]) (\d+) =", seen.text)[0]
    result = {"+": int(one) + int(other), "-": int(one) - int(other), "x": int(one) * int(other)}[sign]
    seen = yield nth(seen, "type", "textbox", 0, str(result))
    yield on(seen, "click", "Submit")


def read_table(goal: str, seen: Observation) -> Solution:
    key = re.findall(r"value of (.*) into", goal)[0]
    value = re.findall(rf"^{re.escape(key)} \| (.*)$", seen.text, re.MULTILINE)[0]
    seen = yield nth(seen, "type", "textbox", 0, value)
    yield on(seen, "click", "Submit")


def colour(goal: str, seen: Observation) -> Solution:
    wanted = re.findall(r"on the (\w+) colored", goal)[0]
    yield on(seen, "click", f"color {wanted}")


def coordinate(goal: str, seen: Observation) -> Solution:
    place = re.findall(r"\(.*?\)", goal)[0]
    yield Action("click", None, next(e.element_id for e in seen.elements if e.name.startswith(f"{place} ")))


def ascending(goal: str, seen: Observation) -> Solution:
    for _ in range(5):
        seen = yield nth(seen, "click", "button")


def slider(goal: str, seen: Observation) -> Solution:
    wanted = re.findall(r"-?\d+", goal)
    for number, value in enumerate(wanted):
        seen = yield nth(seen, "type", "textbox", number, value)
    yield on(seen, "click", "Submit")


def blocks(goal: str, seen: Observation) -> Solution:
    seen = yield nth(seen, "type", "textbox", 0, str(seen.text.count("addition-block")))
    yield on(seen, "click", "Submit")


def last_word(goal: str, seen: Observation) -> Solution:
    seen = yield nth(seen, "type", "textbox", 1, seen.text.split("\n")[-1].split()[-1])
    yield on(seen, "click", "Submit")


def scroll_end(goal: str, seen: Observation) -> Solution:
    seen = yield on(seen, "click", f"text-area scroll to the {'top' if 'top' in goal else 'bottom'}")
    yield on(seen, "click", "Submit")


def highlight(goal: str, seen: Observation) -> Solution:
    paragraph = re.findall(r"the (\d)\w\w paragraph", goal)[0]
    seen = yield on(seen, "click", f"highlight text {paragraph}")
    yield on(seen, "click", "Submit")


def agreement(goal: str, seen: Observation) -> Solution:
    if quoted(goal):
        name, button = quoted(goal)
        seen = yield on(seen, "click", "text-area scroll to the bottom")
        seen = yield on(seen, "type", "Name", name)
        yield on(seen, "click", button)
    else:
        yield on(seen, "click", "Cancel")


def terminal(goal: str, seen: Observation) -> Solution:
    seen = yield on(seen, "search", "command line", "ls")
    ending = re.findall(r"extension (\.\S+)$", goal)
    files = next(
        line for line in reversed(seen.text.split("\n")) if "$" not in line and "." in line and ":" not in line
    )
    wanted = [f for f in files.split() if (f.endswith(ending[0]) if ending else "." not in f)]
    yield on(seen, "search", "command line", f"rm {wanted[0]}")


def phone_book(goal: str, seen: Observation) -> Solution:
    name, what = re.findall(r"Find (\w+) in .* their (phone|email|address)", goal)[0]
    while f"# {name}" not in seen.text:
        seen = yield on(seen, "click", ">")
    yield nth(seen, "click", "link", ("phone", "email", "address").index(what))


def menu(goal: str, seen: Observation) -> Solution:
    *ways, last = goal.removeprefix("Select ").split(">")
    for name in ways:
        seen = yield on(seen, "hover", name)
    yield on(seen, "click", last)


def pie(goal: str, seen: Observation) -> Solution:
    seen = yield on(seen, "click", "+")
    yield on(seen, "click", quoted(goal)[0])


def guess(goal: str, seen: Observation) -> Solution:
    for number in range(10):
        seen = yield nth(seen, "type", "textbox", 0, str(number))
        seen = yield on(seen, "click", "Submit")


SOLUTIONS: dict[str, Solver] = {
    "ascending-numbers": ascending,
    "choose-date": date,
    "choose-list": choose_list,
    "click-button": named_button,
    "click-checkboxes": checkboxes,
    "click-checkboxes-transfer": checkboxes,
    "click-collapsible-2": link_behind_sections,
    "click-color": colour,
    "click-link": link,
    "click-menu": menu,
    "click-option": checkboxes,
    "click-pie-nodelay": pie,
    "click-scroll-list": scroll_list,
    "click-tab": tab,
    "click-tab-2": link_behind_tabs,
    "click-test": only_button,
    "email-inbox": email,
    "enter-password": enter_password,
    "enter-text": enter_text,
    "grid-coordinate": coordinate,
    "guess-number": guess,
    "highlight-text-2": highlight,
    "login-user": login,
    "phone-book": phone_book,
    "read-table": read_table,
    "scroll-text": last_word,
    "scroll-text-2": scroll_end,
    "search-engine": search_engine,
    "sign-agreement": agreement,
    "simple-arithmetic": arithmetic,
    "social-media": social_media,
    "terminal": terminal,
    "use-autocomplete": autocomplete,
    "use-slider-2": slider,
    "visual-addition": blocks,
}
