"""The map's pages: what visitors can do, what they are told, and that sessions are private."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from sites.app import create_app
from sites.map import words
from sites.map.data import MapData, Place
from sites.map.place_pages import WITHIN
from sites.map.places import LISTS, build
from sites.map.site import MAP
from sites.map.state import MAX_PLACES, MapState


@pytest.fixture(scope="module")
def app():
    return create_app(0, sites={"map": MAP})


@pytest.fixture
def visitor(app):
    """A client whose session is fresh and logged in."""
    return client(app, "one", login=True)


@pytest.fixture(scope="module")
def data() -> MapData:
    return build(0)


def client(app, token: str, login: bool) -> TestClient:
    app.state.sessions.reset(token, login=["map"] if login else [])
    return TestClient(app, base_url=f"http://map.{token}.localhost")


def shown(page: str) -> list[tuple[str, str]]:
    """Number and name of each place that a list shows."""
    return re.findall(r'class="item"><a href="/place/(\d+)">([^<]*)<', page)


def shared(data: MapData, towns: int = 2) -> Place:
    """A place on the mainland whose name so many towns or more have."""
    return next(p for p in data.places.values() if p.town != words.ISLAND and len(data.named(p.name)) >= towns)


def pair(data: MapData, town: str = "Elmford") -> tuple[Place, Place]:
    first, second, *_ = [place for place in data.places.values() if place.town == town]
    return first, second


def test_a_search_finds_the_place_on_the_first_page_and_its_namesakes(visitor, data):
    for place in data.places.values():
        page = visitor.get("/search", params={"q": place.label}).text
        assert (str(place.place_id), place.name) in shown(page), place.label
    names = [name for _, name in shown(visitor.get("/search", params={"q": shared(data, 3).label}).text)]
    assert len(set(names)) < len(names)


def test_long_results_come_in_pages_whose_links_keep_the_query(visitor):
    first = visitor.get("/search?q=cafe").text
    assert "Page 1 of 4" in first
    assert 'href="/search?q=cafe&amp;page=2">Next' in first
    last = visitor.get("/search?q=cafe&page=99").text
    assert "Page 4 of 4" in last
    assert "Next" not in last
    assert not set(shown(first)) & set(shown(last))


def test_mistyped_words_are_asked_about(visitor):
    page = visitor.get("/search?q=museun+elmfrd").text
    assert "No places found" in page
    assert 'href="/search?q=Museum%20Elmford">Museum Elmford</a>' in page
    assert "Did you mean" not in visitor.get("/search?q=museum+elmford").text


def test_a_place_shows_its_facts_and_says_what_is_not_known(visitor, data):
    place = shared(data)
    page = visitor.get(place.path).text
    for text in (place.name, f"{place.number} {place.street}", place.postcode, place.coordinates, place.weekdays):
        assert text in page
    silent = next(p for p in data.places.values() if not p.phone)
    assert "not known" in visitor.get(silent.path).text
    assert visitor.get("/place/9999").status_code == 404


def test_pictures_have_a_text_beside_them_and_pages_have_no_scripts_but_the_skip_link(visitor, data):
    first, second = pair(data)
    for path in ("/", first.path, f"/route/foot/{first.place_id}-{second.place_id}"):
        page = visitor.get(path).text
        assert re.search(r'<svg role="img" aria-label="Map of [^"]+"', page)
        assert page.count("<path") >= 1
        assert page.count("<script") == page.count("<script data-skip-link>")
        assert len(page) < 25_000


def test_nearby_lists_kinds_by_distance(visitor, data):
    centre = shared(data)
    page = visitor.get(f"{centre.path}/nearby", params={"kind": "cafe", "within": "2 km"}).text
    metres = [int(m) for m in re.findall(r"cafe \| (\d+) m", page)]
    assert metres == sorted(metres)
    assert f"{len(data.nearby(centre, 'cafe', 2000))} found" in page
    counts = [
        int(re.search(r"(\d+) found", visitor.get(f"{centre.path}/nearby", params={"within": w}).text)[1])
        for w in WITHIN
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert "selected>1 km" in visitor.get(f"{centre.path}/nearby?within=a+mile&kind=zoo").text


def directions(visitor: TestClient, start: str, end: str, mode: str, **more: str):
    return visitor.get("/directions", params={"from": start, "to": end, "mode": mode, **more})


def test_directions_lead_to_the_route_with_its_time_and_turns(visitor, data):
    first, second = pair(data)
    answer = directions(visitor, first.label, f"  {second.label.upper()} ", "foot")
    assert answer.url.path == f"/route/foot/{first.place_id}-{second.place_id}"
    assert re.search(r'id="total">\d+ m, \d+ min in all<', answer.text)
    assert f"Start on {first.street}" in answer.text
    assert f"Arrive at {second.name}" in answer.text
    assert f'value="{first.label}"' in answer.text


def test_slower_ways_of_travel_take_longer(visitor, data):
    first, second = pair(data, "Elmford")[0], pair(data, "Riverton")[0]
    times = [
        int(re.search(r"(\d+) min in all", directions(visitor, first.label, second.label, mode).text)[1])
        for mode in ("car", "bike", "foot")
    ]
    assert times[0] < times[1] < times[2]


@pytest.mark.parametrize(
    ("start", "end", "mode", "complaint"),
    [
        ("", "{a}", "foot", "From: write the name of a place."),
        ("{a}", "Moon Base", "foot", "To: no place is called Moon Base."),
        ("{a}", "{b}", "", "Choose how to travel."),
        ("{a}", "{b}", "rocket", "Choose how to travel."),
        ("{a}", "{a}", "foot", "Two stops in a row are the same place."),
    ],
)
def test_a_form_that_cannot_be_understood_says_why_and_keeps_what_was_written(
    visitor, data, start, end, mode, complaint
):
    first, second = pair(data)
    names = {"a": first.label, "b": second.label}
    answer = directions(visitor, start.format(**names), end.format(**names), mode)
    assert answer.status_code == 422
    assert complaint in answer.text
    assert f'value="{end.format(**names)}"' in answer.text


def test_a_name_that_several_towns_have_is_asked_about_and_the_other_fields_are_kept(visitor, data):
    place = shared(data, 3)
    other = next(p for p in data.places.values() if len(data.named(p.name)) == 1)
    page = directions(visitor, place.name, other.name, "bike").text
    assert f"From: which {place.name}?" in page
    answers = re.findall(r'class="item"><a href="([^"]+)">([^<]+)<', page)
    assert {label for _, label in answers} == {p.label for p in data.named(place.name)}
    address = next(a for a, label in answers if label == place.label).replace("&amp;", "&")
    assert visitor.get(address).url.path == f"/route/bike/{place.place_id}-{other.place_id}"


def test_one_name_for_both_ends_may_mean_two_places(visitor, data):
    name = shared(data).name
    page = directions(visitor, name, name, "foot").text
    assert f"From: which {name}?" in page


def test_stops_are_added_one_at_a_time_up_to_three_and_keep_the_form(visitor):
    page = visitor.get("/directions").text
    for count in range(1, 4):
        values = {"from": "A", "to": "B", "mode": "car", "add": "stop", "stop": ["x"] * (count - 1)}
        page = visitor.get("/directions", params=values).text
        assert f"Stop {count}" in page
        assert 'value="A"' in page
    assert "Add stop" not in page


def test_a_route_over_stops_has_a_line_for_each_leg_and_is_slow_to_come_up(data):
    def timed(delay_s: float) -> tuple[float, str]:
        site = replace(MAP, build=lambda seed: replace(build(seed), slow_route_s=delay_s))
        page = client(create_app(0, sites={"map": site}), "one", login=False)
        numbers = "-".join(str(number) for number in (1, 2, 3, 4))
        page.get("/")
        begun = time.perf_counter()
        text = page.get(f"/route/foot/{numbers}").text
        return time.perf_counter() - begun, text

    slow_s, text = timed(0.3)
    assert slow_s >= 0.3
    assert min(timed(0.0)[0] for _ in range(3)) < 0.3
    legs = text.split('id="legs"')[1].split("</table>")[0]
    assert legs.partition("</thead>")[2].count("<tr>") == 3
    assert "Page 1 of" in text or text.count("<li>") <= 10


def test_no_way_is_told(visitor, data):
    start = pair(data)[0]
    end = next(p for p in data.places.values() if p.town == words.ISLAND)
    page = directions(visitor, start.label, end.label, "car").text
    assert f"There is no way by car from {start.label} to {end.label}." in page
    assert "min in all" in directions(visitor, start.label, end.label, "bike").text


@pytest.mark.parametrize(
    "path", ["/route/foot/1", "/route/foot/1-x", "/route/foot/1-9999", "/route/swim/1-2", "/route/foot/1-2-3-4-5-6"]
)
def test_routes_that_cannot_be_are_not_found(visitor, path):
    assert visitor.get(path).status_code == 404


def test_places_are_saved_once_and_only_into_lists_that_are_there_and_not_full(visitor, data):
    place = next(p for p in data.places.values() if all(p.place_id not in ids for ids in data.lists.values()))
    assert "Choose a list." in visitor.post(f"{place.path}/save", data={"list": ""}).text
    assert "Saved to Weekend." in visitor.post(f"{place.path}/save", data={"list": "Weekend"}).text
    again = visitor.post(f"{place.path}/save", data={"list": "Weekend"})
    assert (again.status_code, "is in Weekend already" in again.text) == (422, True)
    assert place.postcode in visitor.get("/lists/weekend").text
    for number in list(data.places)[:12]:
        page = visitor.post(f"/place/{number}/save", data={"list": "Weekend"}).text
    assert f"a list has {MAX_PLACES} places at most" in page
    assert f"{MAX_PLACES} places" in visitor.get("/lists/weekend").text


def test_lists_are_made_renamed_and_deleted_after_a_question(visitor):
    made = visitor.post("/lists", data={"name": "My walk!"})
    assert "The list My walk! was made." in made.text
    assert f"{len(LISTS) + 1} lists" in made.text
    for name, complaint in (
        ("", "Write a name."),
        ("weekend", "You have a list of this name."),
        ("x" * 31, "30 letters"),
    ):
        answer = visitor.post("/lists", data={"name": name})
        assert (answer.status_code, complaint in answer.text) == (422, True)
    assert "You have a list of this name." in visitor.post("/lists/my-walk/rename", data={"name": "Work"}).text
    renamed = visitor.post("/lists/my-walk/rename", data={"name": "Other"})
    assert renamed.url.path == "/lists/other"
    assert "Delete Other?" in visitor.get("/lists/other/delete").text
    assert "was deleted." in visitor.post("/lists/other/delete").text
    assert visitor.get("/lists/other").status_code == 404


def test_a_place_is_removed_from_its_list_only(visitor, data):
    number = data.lists["Work"][1]
    page = visitor.post(f"/lists/work/remove/{number}").text
    assert "was removed." in page
    assert str(number) not in [n for n, _ in shown(page)]
    assert page.count(">Remove<") == len(data.lists["Work"]) - 1


def test_a_tour_needs_two_places_and_a_way_of_travel_and_may_be_put_in_order(visitor, data):
    visitor.post("/lists", data={"name": "Empty"})
    assert "A tour needs two places or more." in visitor.get("/lists/empty/tour").text
    assert "Choose how to travel." in visitor.get("/lists/work/tour?mode=&order=Shortest").text
    listed, shortest = (
        float(re.search(r'id="total">.*?, (\d+) min', visitor.get(f"/lists/work/tour?mode=foot&order={order}").text)[1])
        for order in ("As+listed", "Shortest")
    )
    assert shortest <= listed


def test_notes_are_kept_changed_and_shown_as_text(visitor, data):
    place = data.places[3]
    assert "&lt;b&gt;loud" in visitor.post(f"{place.path}/note", data={"note": "<b>loud"}).text
    assert "Go early" in visitor.post(f"{place.path}/note", data={"note": "Go early"}).text
    assert 'id="note"' not in visitor.post(f"{place.path}/note", data={"note": ""}).text
    assert "200 letters at most" in visitor.post(f"{place.path}/note", data={"note": "x" * 201}).text


def test_error_reports_are_checked_and_listed_latest_first(visitor, data):
    place, other = pair(data)
    missing = visitor.post(f"{place.path}/report", data={"problem": "", "details": "Gone"})
    assert (missing.status_code, "Choose what is wrong." in missing.text, "Gone" in missing.text) == (422, True, True)
    assert "Write some details." in visitor.post(f"{place.path}/report", data={"problem": "Wrong phone"}).text
    visitor.post(f"{place.path}/report", data={"problem": "Wrong phone", "details": "I called"})
    page = visitor.post(f"{other.path}/report", data={"problem": "Wrong hours", "details": "A sign"}).text
    assert "Thank you for your report." in page
    assert page.index("Wrong hours: A sign") < page.index("Wrong phone: I called")


def test_guests_may_look_but_must_log_in_to_change_anything(app, data):
    guest = client(app, "two", login=False)
    place = data.places[1]
    assert "Save note" not in guest.get(place.path).text
    for answer in (guest.get("/lists"), guest.post(f"{place.path}/save", data={"list": "Work"}), guest.get("/reports")):
        assert answer.url.path == "/login"
        assert "Please log in first." in answer.text
    wrong = guest.post("/login", data={"username": "nora", "password": "x"})
    assert (wrong.status_code, "is wrong" in wrong.text, 'value="nora"' in wrong.text) == (422, True, True)
    assert "You are logged in." in guest.post("/login", data={"username": "nora", "password": "secret"}).text
    assert "Save note" in guest.get(place.path).text
    assert "You are logged out." in guest.post("/logout").text


def test_sessions_do_not_see_each_others_changes_and_start_afresh(app, visitor, data):
    other = client(app, "two", login=True)
    visitor.post("/lists/work/delete")
    visitor.post("/place/1/note", data={"note": "Mine"})
    assert other.get("/lists/work").status_code == 200
    assert "Mine" not in other.get("/place/1").text
    assert client(app, "one", login=True).get("/lists/work").status_code == 200


def test_a_fresh_state_costs_microseconds(data):
    begun = time.process_time()
    for _ in range(1000):
        MapState(data, "nora")
    assert time.process_time() - begun < 0.5
