"""How each task of the applications is solved, a script a task (see ``playing.moves``).

Owns ``EXPERTS``: by the application's name, one script for each task of its file, in the order of the file.
"""

from __future__ import annotations

from benchmarks.applications.playing import Move, moves

_SCRIPTS: dict[str, tuple[str, ...]] = {
    "booking": (
        """type Guest = Ann
        select Room = Attic
        click Day
        click flatpickr next month
        click December 24, 2026
        click Book""",
        "click Cancel Bert",
        """type Find a room = lib
        click Library
        exit = 3""",
        """click Edit Cora
        select Room of the booking = Balcony
        click Save""",
        "click Balcony",
    ),
    "sheet": (
        """type searchbox: Item = Rocking
        click 210
        type textbox: … = 175
        press_enter""",
        """click Left
        exit = Rocking chair""",
        "click Delete High chair",
        """click tabulator cell [3]
        click checkbox: …""",
        """click Add a row
        click New item
        type textbox: … = Piano stool
        press_enter
        click lamp
        click chair [4]""",
    ),
    "board": (
        "drag Buy paint = Order wood",
        "drag Call the plumber = Write the plan",
        """type New card = Paint the fence
        click Add
        drag Paint the fence = Repair the fence""",
        """drag Buy paint = Order wood
        drag Write the plan = Order wood""",
        "exit = Order wood",
    ),
    "letter": (
        """type textbox: Write here = Hello Ann, the party is on Saturday.
        click Save""",
        """click Complaint
        type Subject = Broken lamp
        click Save""",
        """click Complaint
        exit = the lamp""",
        """type textbox: Write here = Party on Friday
        click Normal
        click Heading 1
        click Save""",
        """click Complaint
        press_key textbox: Write here = Control+A
        click bold
        click Save""",
    ),
    "config": (
        """click 8080
        press_enter
        type Edit value = 9090
        press_enter
        click Save""",
        """click Click to toggle this boolean value
        click Save""",
        "exit = 100",
        """click text
        type JSON editor = {"name": "proxy"}
        click Save""",
        """click gateway
        press_enter
        type Edit value = edge
        press_enter
        click Save""",
    ),
    "maildev": (
        """click AN Ann…
        click Delete email""",
        """click BE Bert…
        exit = Harbour Street 12""",
        "click CO Cora…",
        """click Delete all emails
        click Confirm delete all emails""",
        """type Search emails... = bert
        exit = 2""",
    ),
    "tiddlywiki": (
        """type searchbox: … = Bread
        click link: Bread
        exit = 45""",
        """click new tiddler
        type textbox: Draft of… = Shopping
        type textbox: Type the text… = Milk and eggs
        click Confirm changes…
        wait""",
        """click Edit this tiddler
        type textbox: Type the text… = Water the beans on Friday.
        click Confirm changes…
        wait""",
        """click Edit this tiddler
        type textbox: tag name = urgent
        click add
        click Confirm changes…
        wait""",
        """click Edit this tiddler
        click Delete this tiddler
        wait""",
    ),
    "money": (
        """click Add a new bill
        type What? = Taxi
        select Who paid? = Cora
        type How much? = 30
        click Submit""",
        """click Settle
        exit = 37""",
        """type Add participant = Dan
        click Add""",
        """click delete [1]
        click Are you sure?""",
        """click edit [2]
        type How much? = 60
        click Submit""",
    ),
    "piccolo": (
        """click director
        click Add Row
        type name = Ann Lee
        select gender = Female
        click Create""",
        """click movie
        exit = 70.5""",
        """click movie
        click ellipsis vertical [11]
        click Delete""",
        """click studio
        click ellipsis vertical
        click Edit
        type name = Pinewood
        click Save""",
        """click ticket
        click Add Row""",
    ),
}
EXPERTS: dict[str, tuple[tuple[Move, ...], ...]] = {
    name: tuple(map(moves, scripts)) for name, scripts in _SCRIPTS.items()
}
