"""Scripted solutions of MiniWoB++ pages with forms, sums and choices; see ``miniwob_solutions``."""

from __future__ import annotations

import re

from records.environment import Action, Observation
from tests.environments.miniwob_solutions import (  # fmt: skip
    Solution,
    Solver,
    autocomplete,
    checkboxes,
    date,
    email,
    enter_text,
    link_behind_sections,
    link_behind_tabs,
    named_button,
    nth,
    on,
    quoted,
    slider,
)

HUES = {"red": 0, "green": 1, "blue": 2}
COLOURS = {"lime": "00FF00", "magenta": "FF00FF"}
PLACES = {"1st": 0, "2nd": 1, "3rd": 2, "4th": 3, "5th": 4}
WIDGETS = {"text": "textbox", "textarea": "textbox"}


def in_order(goal: str, seen: Observation) -> Solution:
    seen = yield on(seen, "click", "ONE")
    yield on(seen, "click", "TWO")


def close_dialog(goal: str, seen: Observation) -> Solution:
    wanted = (quoted(goal) or ["x"])[0]
    yield on(seen, "click", "Close" if wanted == "x" else wanted)


def expand(goal: str, seen: Observation) -> Solution:
    seen = yield nth(seen, "click", "tab")
    yield on(seen, "click", "Submit", role="button")


def widget(goal: str, seen: Observation) -> Solution:
    wanted = quoted(goal)[0]
    boxes = [e for e in seen.elements if e.role == WIDGETS.get(wanted, wanted)]
    # Fields of one and of several lines look alike in text, and the page has both when it asks for either.
    fits = [e for e in boxes if bool(e.value) == (wanted == "textarea")] if wanted in WIDGETS else boxes
    yield nth(seen, "click", fits[0].role, boxes.index(fits[0]))


def copy(goal: str, seen: Observation) -> Solution:
    place = re.findall(r"the (\d)\w\w text area", goal)
    seen = yield on(seen, "click", f"copy text area {place[0] if place else 1}")
    seen = yield on(seen, "click", "paste into field 1")
    yield on(seen, "click", "Submit")


def day(goal: str, seen: Observation) -> Solution:
    month, number, year = re.findall(r"(\d\d)/(\d\d)/(\d{4})", goal)[0]
    seen = yield nth(seen, "type", "textbox", 0, f"{year}-{month}-{number}")
    yield on(seen, "click", "Submit")


def clock(goal: str, seen: Observation) -> Solution:
    hour, minute, half = re.findall(r"(\d+):(\d\d) (AM|PM)", goal)[0]
    seen = yield nth(seen, "type", "textbox", 0, f"{int(hour) % 12 + 12 * (half == 'PM'):02}:{minute}")
    yield on(seen, "click", "Submit")


def cased(goal: str, seen: Observation) -> Solution:
    word = quoted(goal)[0]
    seen = yield nth(seen, "type", "textbox", 0, word.upper() if "upper" in goal else word.lower())
    yield on(seen, "click", "Submit")


def word(goal: str, seen: Observation) -> Solution:
    place = int(re.findall(r"the (\d+)\w\w word", goal)[0])
    found = seen.text.split("\n")[2].split()[place - 1].rstrip(".,")
    seen = yield nth(seen, "type", "textbox", 0, found)
    yield on(seen, "click", "Submit")


def focus(goal: str, seen: Observation) -> Solution:
    place = re.findall(r"the (\d\w\w) input", goal)
    yield nth(seen, "click", "textbox", PLACES[place[0]] if place else 0)


def slider_and_box(goal: str, seen: Observation) -> Solution:
    value, place = re.findall(r"Select (-?\d+) with the slider, click the (\d\w\w) checkbox", goal)[0]
    seen = yield nth(seen, "type", "textbox", 0, value)
    seen = yield nth(seen, "click", "checkbox", PLACES[place])
    yield on(seen, "click", "Submit")


def radio_and_text(goal: str, seen: Observation) -> Solution:
    first, number, second = re.findall(
        r'the (\d\w\w) radio button and enter the number "(-?\d+)" into the (\d\w\w)', goal
    )[0]
    seen = yield nth(seen, "click", "radio", PLACES[first])
    seen = yield nth(seen, "type", "textbox", PLACES[second], number)
    yield on(seen, "click", "Submit")


def option_and_button(goal: str, seen: Observation) -> Solution:
    seen = yield on(seen, "click", "▾")
    seen = yield on(seen, "click", re.findall(r"Choose (.*) from", goal)[0])
    yield on(seen, "click", quoted(goal)[0])


def generate(goal: str, seen: Observation) -> Solution:
    bound = [int(n) for n in re.findall(r"\d+", goal)]
    while True:
        seen = yield on(seen, "click", "Generate")
        number = int(seen.text.split("\n")[2])
        fits = {"less": lambda n: n < bound[0], "greater": lambda n: n > bound[0],
                "odd": lambda n: n % 2 == 1, "even": lambda n: n % 2 == 0}  # fmt: skip
        if next(test for name, test in fits.items() if name in goal)(number):
            yield on(seen, "click", "Submit")
            return


def movie(goal: str, seen: Observation) -> Solution:
    genre, director, year = re.findall(r"for (\w+) movies directed by (\w+) from year (\d+)", goal)[0]
    for label, text in (("Genre", genre), ("Director", director), ("Year|Date", year)):
        lines = seen.text.split("\n")
        place = next(i for i, line in enumerate(lines) if i > 1 and re.search(label, line))
        field = next(line for line in lines[place + 1 :] if line.startswith("textbox"))
        seen = yield nth(
            seen, "type", "textbox", sum(e.role == "textbox" for e in seen.elements[: int(field.split()[-1])]), text
        )
    last = seen.elements[-1]
    yield on(seen, "click", last.name, role=last.role)


def odd_or_even(goal: str, seen: Observation) -> Solution:
    numbers = [int(line) for line in seen.text.split("\n") if re.fullmatch(r"-?\d+", line)]
    for place, number in enumerate(numbers):
        name = "Odd" if number % 2 else "Even"
        seen = yield nth(seen, "click", "button", 2 * place + (name == "Even"))
    yield on(seen, "click", "Submit")


def order(goal: str, seen: Observation) -> Solution:
    lines = seen.text.split("\n")
    kind = re.findall(r"Order (\d+) items that are (.*)", goal)
    if kind:
        number, wanted = kind[0]
        places = [i - 1 for i, line in enumerate(lines) if i > 1 and wanted in line.split()][: int(number)]
    else:
        places = [lines.index(dish) for dish in goal.partition(": ")[2].split(", ")]
    for place in places:
        plus = next(line for line in lines[place:] if line.startswith("clickable +"))
        seen = yield Action("click", None, int(plus.split()[-1]))
    yield on(seen, "click", "Order!")


def equation(goal: str, seen: Observation) -> Solution:
    text = seen.text.split("\n")[2]
    found = next(x for x in range(-500, 500) if _holds(text, x))
    seen = yield nth(seen, "type", "textbox", 0, str(found))
    yield on(seen, "click", "Submit")


def _holds(text: str, x: int) -> bool:
    one, sign, other, result = (str(x) if part == "x" else part for part in re.findall(r"x|-?\d+|[-+]", text))
    return int(one) + int(other) * (1 if sign == "+" else -1) == int(result)


def all_posts(goal: str, seen: Observation) -> Solution:
    what, user = re.findall(r'"(\w+)" button on .* by (@\w+)', goal)[0]
    most = int((re.findall(r"on (\d+) post", goal) or ["99"])[0])
    for place in [i for i, line in enumerate(seen.text.split("\n")) if i > 1 and line.endswith(f" {user}")][:most]:
        button = next(x for x in seen.text.split("\n")[place:] if x.startswith(f"clickable {what.lower()} "))
        seen = yield nth(seen, "click", "clickable", int(button.split()[-1]))
    yield on(seen, "click", "Submit")


def shown_text(goal: str, seen: Observation) -> Solution:
    seen = yield nth(seen, "type", "textbox", 0, seen.text.split("\n")[2])
    yield on(seen, "click", "Submit")


def colour_code(goal: str, seen: Observation) -> Solution:
    code = re.findall(r"#(\w{6})", seen.text)
    seen = yield nth(seen, "type", "textbox", 0, code[0] if code else COLOURS[goal.split()[1]])
    yield on(seen, "click", "Submit")


def shades(goal: str, seen: Observation) -> Solution:
    hue = HUES[re.findall(r"shades of (\w+)", goal)[0]]
    for element in [e for e in seen.elements if e.role == "clickable"]:
        parts = [int(element.name[-6:][2 * i : 2 * i + 2], 16) for i in range(3)]
        if parts[hue] == max(parts):
            seen = yield nth(seen, "click", "clickable", element.element_id)
    yield on(seen, "click", "Submit")


def identify(goal: str, seen: Observation) -> Solution:
    drawn = seen.elements[-1].name
    letter = re.findall(r'"(.)"', drawn)
    kinds = {"circle": "Circle", "rect": "Rectangle", "polygon": "Triangle"}
    name = (
        ("Number" if letter[0].isdigit() else "Letter") if letter else next(v for k, v in kinds.items() if k in drawn)
    )
    yield on(seen, "click", name)


def greatest(goal: str, seen: Observation) -> Solution:
    cards = [int(e.name) for e in seen.elements if e.role == "clickable"]
    seen = yield nth(seen, "click", "clickable", cards.index(max(cards)))
    yield on(seen, "click", "Submit")


def ticket(goal: str, seen: Observation) -> Solution:
    offers = re.findall(r"Duration:\n(\d+)h (\d+)m\nbutton Book for \$(\d+) (\d+)", seen.text)
    worth = (lambda o: int(o[2])) if re.search("cheap|expensive", goal) else (lambda o: 60 * int(o[0]) + int(o[1]))
    best = (max if re.search("longest|expensive", goal) else min)(offers, key=worth)
    yield nth(seen, "click", "button", int(best[3]))


def spinner(goal: str, seen: Observation) -> Solution:
    wanted = int(re.findall(r"-?\d+", goal)[0])
    for _ in range(abs(wanted)):
        seen = yield on(seen, "click", f"ui-spinner-button ui-spinner-{'up' if wanted > 0 else 'down'}")
    yield on(seen, "click", "Submit")


def login_popup(goal: str, seen: Observation) -> Solution:
    for field, text in enumerate(quoted(goal)):
        while not [e for e in seen.elements if e.role == "textbox"]:
            seen = yield on(seen, "click", "Cancel")
        seen = yield nth(seen, "type", "textbox", field, text)
        if seen.elements[0].role != "textbox" or not [e for e in seen.elements if e.value]:
            seen = yield on(seen, "click", "Cancel")
            seen = yield nth(seen, "type", "textbox", field, text)
    yield on(seen, "click", "OK")


def highlight_only(goal: str, seen: Observation) -> Solution:
    seen = yield on(seen, "click", "highlight text 1")
    yield on(seen, "click", "Submit")


def tree(goal: str, seen: Observation) -> Solution:
    def exact() -> list[str]:
        return [e.name for e in seen.elements if e.name == quoted(goal)[0]]

    while not exact():
        folded = next(e for e in seen.elements if "expandable-hitarea" in e.name)
        seen = yield on(seen, "click", folded.name)
    places = [e.element_id for e in seen.elements if e.name == quoted(goal)[0]]
    yield Action("click", None, places[-1])


FORM_SOLUTIONS: dict[str, Solver] = {
    "buy-ticket": ticket,
    "choose-date-easy": date,
    "choose-date-medium": date,
    "choose-date-nodelay": date,
    "click-button-sequence": in_order,
    "click-checkboxes-large": checkboxes,
    "click-collapsible": expand,
    "click-collapsible-2-nodelay": link_behind_sections,
    "click-collapsible-nodelay": expand,
    "click-dialog": close_dialog,
    "click-dialog-2": close_dialog,
    "click-shades": shades,
    "click-tab-2-easy": link_behind_tabs,
    "click-widget": widget,
    "copy-paste": copy,
    "copy-paste-2": copy,
    "email-inbox-delete": email,
    "email-inbox-forward": email,
    "email-inbox-important": email,
    "email-inbox-noscroll": email,
    "email-inbox-reply": email,
    "email-inbox-star-reply": email,
    "enter-date": day,
    "enter-text-2": cased,
    "enter-text-dynamic": enter_text,
    "enter-time": clock,
    "find-greatest": greatest,
    "find-word": word,
    "focus-text": focus,
    "focus-text-2": focus,
    "form-sequence": slider_and_box,
    "form-sequence-2": radio_and_text,
    "form-sequence-3": option_and_button,
    "generate-number": generate,
    "highlight-text": highlight_only,
    "identify-shape": identify,
    "login-user-popup": login_popup,
    "multi-layouts": movie,
    "multi-orderings": movie,
    "navigate-tree": tree,
    "odd-or-even": odd_or_even,
    "order-food": order,
    "simple-algebra": equation,
    "social-media-all": all_posts,
    "social-media-some": all_posts,
    "text-transform": shown_text,
    "unicode-test": named_button,
    "use-autocomplete-nodelay": autocomplete,
    "use-colorwheel": colour_code,
    "use-colorwheel-2": colour_code,
    "use-slider": slider,
    "use-spinner": spinner,
}
"""Pages of forms, and variants of other pages, by name."""
