"""The encyclopedia's pages, and that it tells the same facts as the map and the shop."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from starlette.testclient import TestClient

from sites.app import create_app
from sites.map import places as map_places
from sites.shop import data as shop
from sites.wiki.article_pages import CHANGES_PER_PAGE
from sites.wiki.articles import build
from sites.wiki.data import WikiData, bare, slug
from sites.wiki.site import WIKI


@pytest.fixture(scope="module")
def app():
    return create_app(0, sites={"wiki": WIKI})


@pytest.fixture
def reader(app):
    return client(app, "one")


@pytest.fixture(scope="module")
def data() -> WikiData:
    return build(0)


def client(app, token: str) -> TestClient:
    app.state.sessions.reset(token)
    return TestClient(app, base_url=f"http://wiki.{token}.localhost")


def listed(page: str) -> list[str]:
    return re.findall(r'<li><a href="[^"]+">([^<]+)</a>', page)


@pytest.mark.parametrize("seed", range(3))
def test_there_are_150_articles_or_more_whose_addresses_differ_and_links_lead_somewhere(seed):
    data = build(seed)
    assert 150 <= len(data.articles) <= 300
    assert len(data.by_slug) == len(data.articles)
    assert len({slug(name) for name in data.categories}) == len(data.categories)
    for article in data.articles.values():
        assert set(article.links) <= set(data.articles), article.title
        assert article.categories


def test_towns_and_places_are_those_of_the_map(data):
    region = map_places.build(0)
    assert {a.title for a in data.articles.values() if a.subject == "town"} == set(region.towns)
    places = [article for article in data.articles.values() if article.subject == "place"]
    assert len(places) >= 60
    for article in places:
        place = region.find(bare(article.title), article.facts["Town"])
        assert article.facts["Address"] == f"{place.number} {place.street}"
        assert (article.title == place.name) == (len(region.named(place.name)) == 1)


def test_materials_are_those_of_the_shop_and_used_for_what_it_sells(data):
    products = [product.name.split() for product in shop.build(0).products.values()]
    materials = [article for article in data.articles.values() if article.subject == "material"]
    assert len(materials) == 8
    for article in materials:
        use = article.facts["Used for"]
        assert any(article.title in words and words[-1].lower() == use for words in products)


@pytest.mark.parametrize("seed", range(3))
def test_years_of_birth_and_of_opening_differ_and_every_town_has_its_mayor(seed):
    articles = build(seed).articles.values()
    for label in ("Born", "Opened"):
        years = [article.facts[label] for article in articles if label in article.facts]
        assert len(set(years)) == len(years) > 50
    mayors = {a.facts["Mayor"]: a.title for a in articles if a.subject == "town"}
    assert len(mayors) == 5
    for article in articles:
        if article.title in mayors:
            assert article.facts["Town"] == mayors[article.title]
        if "Died" in article.facts:
            assert int(article.facts["Died"]) > int(article.facts["Born"]) + 40


def test_works_of_an_architect_name_the_architect(data):
    people = [a for a in data.articles.values() if a.facts.get("Occupation") == "architect"]
    works = [(person, data.articles[title]) for person in people for title in person.links[1:]]
    assert len(works) > 40
    assert all(work.facts["Architect"] == person.title for person, work in works)


def test_a_search_for_a_title_opens_its_article_in_any_case(reader, data):
    for title in list(data.articles)[::7]:
        assert reader.get("/search", params={"q": title.upper()}).url.path == data.articles[title].path


def test_a_name_that_several_towns_have_is_asked_about(reader, data):
    name, count = Counter(bare(title) for title in data.articles).most_common(1)[0]
    page = reader.get("/search", params={"q": name.lower()}).text
    assert "This name may mean" in page
    assert len(listed(page)) == count > 1
    assert all(title.startswith(f"{name} (") for title in listed(page))


def test_other_searches_list_what_nearly_fits_in_pages_and_ask_about_mistyped_titles(reader):
    page = reader.get("/search?q=some+museum+there").text
    assert "Page 1 of 2" in page
    assert all("Museum" in title for title in listed(page))
    mistyped = reader.get("/search?q=elmfrod").text
    assert 'Did you mean <a href="/wiki/elmford">Elmford</a>?' in mistyped
    assert "No article is called that." in reader.get("/search?q=xyzzy").text
    assert "No article is called that." in reader.get("/search").text


def test_an_article_shows_its_facts_and_links_each_name_that_has_an_article(reader, data):
    article = next(a for a in data.articles.values() if "Architect" in a.facts)
    page = reader.get(article.path).text
    for label, value in article.facts.items():
        assert f'<th scope="row">{label}</th>' in page
        assert value in page
    architect = data.articles[article.facts["Architect"]]
    assert page.count(f'<a href="{architect.path}">{architect.title}</a>') == 2
    assert reader.get("/wiki/atlantis").status_code == 404


def test_categories_hold_their_articles_over_several_pages(reader, data):
    first, second = (reader.get(f"/categories?page={number}").text for number in (1, 2))
    assert not set(listed(first)) & set(listed(second))
    museums = [*listed(reader.get("/category/museums").text), *listed(reader.get("/category/museums?page=2").text)]
    assert museums == [article.title for article in data.categories["Museums"]]
    assert f"{len(museums)} articles since" in reader.get("/category/museums").text
    assert reader.get("/category/dragons").status_code == 404


def test_histories_run_from_the_latest_change_to_the_first_version(reader, data):
    article = next(a for a in data.articles.values() if len(a.history) > CHANGES_PER_PAGE)
    first, last = reader.get(f"{article.path}/history").text, reader.get(f"{article.path}/history?page=2").text
    assert article.history[0].editor in first
    assert "First version" in last
    assert "First version" not in first
    for one in data.articles.values():
        years = [int(change.day.split()[-1]) for change in one.history]
        assert years == sorted(set(years), reverse=True)
        assert [change.comment == "First version" for change in one.history] == [False] * (len(years) - 1) + [True]


def test_the_reading_list_keeps_an_article_once_and_gives_it_back(app, reader, data):
    oak = data.articles["Oak"]
    assert "Your reading list is empty." in reader.get("/reading").text
    for _ in range(2):
        assert "Oak is on your reading list." in reader.post(f"{oak.path}/put").text
    assert reader.get("/reading").text.count(f'href="{oak.path}"') == 1
    assert "Oak" not in client(app, "two").get("/reading").text
    assert "Your reading list is empty." in reader.post(f"{oak.path}/take").text
    for article in list(data.articles.values())[:31]:
        page = reader.post(f"{article.path}/put").text
    assert "Your reading list is full." in page


def test_pages_have_no_scripts_and_escape_what_is_typed(reader):
    page = reader.get("/search?q=<script>alert(1)</script>").text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
