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
}
EXPERTS: dict[str, tuple[tuple[Move, ...], ...]] = {
    name: tuple(map(moves, scripts)) for name, scripts in _SCRIPTS.items()
}
