"""Fragments of a guest house's booking page, as htmx asks for them.

Owns ``answer``. Pure but for the state that it is given, which it changes in place.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

_esc = html.escape


def answer(method: str, path: str, told: Mapping[str, str], kept: dict[str, Any]) -> str:
    """Return the fragment for a request; ``kept`` are rooms and bookings by their names and numbers."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["rooms"] and len(parts) == 2:
        return _room(parts[1], kept)
    if parts[:1] == ["rooms"]:
        return _rooms(told.get("q", ""), kept)
    if parts[:1] == ["bookings"] and method == "POST":
        return _save(parts[1:], told, kept)
    if parts[:1] == ["bookings"] and method == "DELETE":
        kept["bookings"].pop(parts[1], None)
        return _bookings(kept)
    if parts[:1] == ["bookings"] and parts[-1:] == ["edit"]:
        return _edit(parts[1], kept)
    return _start(kept)


def _start(kept: dict[str, Any]) -> str:
    rooms = "".join(f"<option>{_esc(name)}</option>" for name in kept["rooms"])
    return f"""<h2>Rooms</h2>
<input type="search" name="q" aria-label="Find a room" hx-get="/rooms" hx-trigger="input changed delay:100ms"
 hx-target="#rooms"><div id="rooms">{_rooms("", kept)}</div>
<h2>New booking</h2>
<form hx-post="/bookings" hx-target="#bookings"><label>Guest <input name="guest" required></label>
<label>Room <select name="room">{rooms}</select></label>
<label>Day <input name="day" class="day" data-default="{_esc(kept["today"])}" required></label>
<button>Book</button></form>
<h2>Bookings</h2><div id="bookings">{_bookings(kept)}</div>"""


def _rooms(wanted: str, kept: dict[str, Any]) -> str:
    names = [name for name in kept["rooms"] if wanted.casefold() in name.casefold()]
    links = "".join(
        f'<li><a href="/rooms/{_esc(name)}" hx-get="/rooms/{_esc(name)}" hx-target="#content" hx-push-url="true">'
        f"{_esc(name)}</a></li>"
        for name in names
    )
    return f"<ul>{links}</ul>" if links else "<p>No such room.</p>"


def _room(name: str, kept: dict[str, Any]) -> str:
    room = kept["rooms"].get(name)
    if room is None:
        return "<p>No such room.</p>"
    facts = "".join(f"<dt>{_esc(key)}</dt><dd>{_esc(str(value))}</dd>" for key, value in room.items())
    back = '<a href="/" hx-get="/" hx-target="#content" hx-push-url="true">All rooms</a>'
    return f"<h2>{_esc(name)}</h2><dl>{facts}</dl>{back}"


def _bookings(kept: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr id=b{number}><td>{_esc(one['guest'])}</td><td>{_esc(one['room'])}</td><td>{_esc(one['day'])}</td>"
        f'<td><button hx-get="/bookings/{number}/edit" hx-target="#b{number}" hx-swap="outerHTML" '
        f'aria-label="Edit {_esc(one["guest"])}">Edit</button>'
        f'<button hx-delete="/bookings/{number}" hx-target="#bookings" hx-confirm="Cancel this booking?" '
        f'aria-label="Cancel {_esc(one["guest"])}">Cancel</button></td></tr>'
        for number, one in kept["bookings"].items()
    )
    return f"<table><tr><th>Guest</th><th>Room</th><th>Day</th><th></th></tr>{rows}</table>"


def _edit(number: str, kept: dict[str, Any]) -> str:
    one = kept["bookings"][number]
    options = "".join(f"<option{' selected' * (name == one['room'])}>{_esc(name)}</option>" for name in kept["rooms"])
    return (
        f'<tr id=b{number}><td><input name="guest" aria-label="Guest of the booking" value="{_esc(one["guest"])}"></td>'
        f'<td><select name="room" aria-label="Room of the booking">{options}</select></td>'
        f'<td><input name="day" aria-label="Day of the booking" value="{_esc(one["day"])}"></td>'
        f'<td><button hx-post="/bookings/{number}" hx-include="closest tr" hx-target="#bookings">'
        "Save</button></td></tr>"
    )


def _save(parts: list[str], told: Mapping[str, str], kept: dict[str, Any]) -> str:
    number = parts[0] if parts else str(max(map(int, kept["bookings"]), default=0) + 1)
    if told.get("room") in kept["rooms"] and told.get("guest") and told.get("day"):
        kept["bookings"][number] = {name: told[name] for name in ("guest", "room", "day")}
    return _bookings(kept)
