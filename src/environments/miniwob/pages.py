"""Which MiniWoB++ pages are played, and why each of the others is not.

Owns the tables ``PAGES`` and ``EXCLUDED``. Invariants: every page of the package is in exactly one of them;
variants of one page are in the same split, so that a held-out page is really new. Pure data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "validation", "test"]
Aid = Literal["shapes", "labels", "slider", "read", "scroll", "options", "keys", "clipboard", "mark", "blocks"]
"""What ``page_control.js`` adds in text: the shapes of drawings (or only their texts), number fields for sliders,
the full text of long fields, the ends of scroll bars, the options of lists that take several, a line that is typed
key by key, copying and pasting, the highlighting of paragraphs, and boxes that have but a colour or a picture."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page: ``name`` is its file without ``.html``; ``reload`` says that its old episode shows through a reset."""

    name: str
    split: Split
    aids: tuple[Aid, ...] = ()
    reload: bool = False


_AIDS: dict[str, tuple[Aid, ...]] = {
    "ascending-numbers": ("shapes",),
    "click-menu-2": ("blocks",),
    "click-pie-nodelay": ("labels",),
    "click-scroll-list": ("options",),
    "click-shape": ("shapes",),
    "copy-paste": ("clipboard",),
    "copy-paste-2": ("clipboard",),
    "count-shape": ("shapes",),
    "form-sequence": ("slider",),
    "grid-coordinate": ("shapes",),
    "highlight-text": ("mark",),
    "highlight-text-2": ("mark",),
    "identify-shape": ("shapes",),
    "scroll-text": ("read",),
    "scroll-text-2": ("scroll",),
    "sign-agreement": ("scroll",),
    "terminal": ("keys",),
    "use-colorwheel-2": ("blocks",),
    "use-slider": ("slider",),
    "use-slider-2": ("slider",),
    "visual-addition": ("blocks",),
}

_RELOAD = frozenset({
    "book-flight", "book-flight-nodelay", "choose-date", "choose-date-easy", "choose-date-medium",
    "choose-date-nodelay", "focus-text-2", "scroll-text", "scroll-text-2", "search-engine", "use-autocomplete",
    "use-autocomplete-nodelay", "use-colorwheel", "use-colorwheel-2",
})  # fmt: skip

_NAMES: dict[Split, str] = {
    "train": """
        ascending-numbers book-flight book-flight-nodelay buy-ticket choose-date choose-date-easy choose-date-medium
        choose-date-nodelay choose-list click-button click-button-sequence click-checkboxes click-checkboxes-large
        click-checkboxes-soft click-checkboxes-transfer click-color click-link click-option click-pie-nodelay
        click-shades click-shape click-tab click-tab-2 click-tab-2-easy click-tab-2-hard
        click-tab-2-medium click-test click-test-2 click-test-transfer email-inbox email-inbox-delete
        email-inbox-forward email-inbox-forward-nl email-inbox-forward-nl-turk email-inbox-important
        email-inbox-nl-turk email-inbox-noscroll email-inbox-reply email-inbox-star-reply enter-date enter-password
        enter-text enter-text-2 enter-text-dynamic focus-text focus-text-2 form-sequence form-sequence-2
        form-sequence-3 generate-number grid-coordinate highlight-text highlight-text-2 identify-shape login-user
        login-user-popup search-engine sign-agreement simple-algebra simple-arithmetic terminal unicode-test
        use-autocomplete use-autocomplete-nodelay use-colorwheel use-colorwheel-2 use-slider use-slider-2
        visual-addition
    """,
    "validation": """
        click-collapsible click-collapsible-2 click-collapsible-2-nodelay click-collapsible-nodelay click-scroll-list
        click-widget find-word guess-number odd-or-even order-food phone-book scroll-text scroll-text-2
        text-transform
    """,
    "test": """
        click-dialog click-dialog-2 click-menu click-menu-2 copy-paste copy-paste-2 count-shape enter-time
        find-greatest multi-layouts multi-orderings navigate-tree read-table read-table-2 social-media
        social-media-all social-media-some tic-tac-toe use-spinner
    """,
}

PAGES: dict[str, Page] = {
    name: Page(name, split, _AIDS.get(name, ()), name in _RELOAD)
    for split, names in _NAMES.items()
    for name in names.split()
}
"""The pages that are played, by name."""

_DRAG = "things are dragged to free points, to edges or by a distance, and the grammar drags onto elements"
_POINT = "wants a click at a point, and the grammar clicks elements"
_DRAWING = "wants a line drawn with the mouse"
_TIME = "real time is part of the task, and the time in which an agent thinks would decide it"
_PIXELS = "what counts is in pixels only, and no attribute of the page says it"
_FLIGHT = "a copy of an airline's site in a frame: its instruction is a list of fields, its data a file of old flights"

EXCLUDED: dict[str, str] = {
    "bisect-angle": _POINT,
    "button-delay": _TIME,
    "chase-circle": _TIME,
    "circle-center": _POINT,
    "click-pie": "its menu opens in an animation of its own that takes seconds; click-pie-nodelay is the same without",
    "count-sides": _PIXELS,
    "daily-calendar": _DRAG,
    "drag-box": _DRAG,
    "drag-circle": _DRAG,
    "drag-cube": _DRAG,
    "drag-items": _DRAG,
    "drag-items-grid": _DRAG,
    "drag-shapes": _DRAG,
    "drag-shapes-2": _DRAG,
    "drag-single-shape": _DRAG,
    "drag-sort-numbers": _DRAG,
    "draw-circle": _DRAWING,
    "draw-line": _DRAWING,
    "find-midpoint": _POINT,
    "flight/AA": _FLIGHT,
    "flight/Alaska": _FLIGHT,
    "flight/Alaska-auto": _FLIGHT,
    "flight/Alaska-auto-medium": _FLIGHT,
    "hot-cold": _POINT,
    "hover-shape": _TIME,
    "moving-items": _TIME,
    "number-checkboxes": _PIXELS,
    "resize-textarea": _DRAG,
    "right-angle": _POINT,
    "simon-says": _TIME,
    "stock-market": _TIME,
    "text-editor": "wants a word selected in an editor, and the grammar selects no text",
}
"""Why a page is not played, by name; pages of the package's ``flight`` folder begin with ``flight/``."""
