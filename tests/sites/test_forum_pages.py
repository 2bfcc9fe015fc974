"""The forum's pages: what visitors can do, what they are told, and that sessions are private."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from sites.forum.data import ME, build
from sites.forum.state import ForumState


@pytest.fixture
def visitor(app):
    """A client whose session is fresh and logged in."""
    return client(app, "one", login=True)


def client(app, token: str, login: bool) -> TestClient:
    app.state.sessions.reset(token, login=["forum"] if login else [])
    return TestClient(app, base_url=f"http://forum.{token}.localhost")


def titles(page: str) -> list[str]:
    return re.findall(r'class="item thread"><a href="[^"]*">([^<]*)<', page)


def points(page: str) -> list[int]:
    return [int(number) for number in re.findall(r"(-?\d+) points", page)]


def data():
    return build(0)


def a_thread(by_me: bool = False):
    return next(t for t in data().threads.values() if (t.author == ME) == by_me)


def test_top_sorts_by_points_over_all_pages(visitor):
    first, second = (visitor.get(f"/f/books?sort=top&page={n}").text for n in (1, 2))
    shown = points(first) + points(second)
    assert len(shown) == 10
    assert shown == sorted(shown, reverse=True)


def test_new_hot_and_top_put_different_threads_first(visitor):
    firsts = {sort: titles(visitor.get(f"/?sort={sort}").text)[0] for sort in ("hot", "new", "top")}
    assert len(set(firsts.values())) == 3


def test_pages_beyond_the_last_show_the_last_and_links_keep_the_order(visitor):
    page = visitor.get("/f/books?sort=top&page=99").text
    assert "Page 5 of 5" in page
    assert 'href="/f/books?sort=top&amp;page=4">Previous' in page
    assert "Next" not in page


def test_search_finds_a_title_and_its_siblings_and_filters_by_forum(visitor):
    everywhere = visitor.get("/search?q=weekly+question").text
    one = visitor.get("/search?q=weekly+question&forum=books").text
    assert "Page 1 of 3" in everywhere
    assert titles(one) == ["Weekly question"]
    assert titles(visitor.get("/search?q=nothing+like+it").text) == []


def test_a_search_for_a_user_shows_users_of_similar_names(visitor):
    names = re.findall(r'href="/user/(\w+)">\1<', visitor.get("/search?q=amber").text)
    assert names[0] == "amber"
    assert len(names) == 3


def test_a_vote_counts_once_and_can_be_taken_back_or_turned(visitor):
    thread = a_thread()

    def vote(direction: str) -> int:
        return points(visitor.post(f"{thread.path}/vote", data={"vote": direction}).text)[0]

    assert vote("up") == thread.points + 1
    assert vote("up") == thread.points
    assert vote("up") == thread.points + 1
    assert vote("down") == thread.points - 1


def test_a_new_thread_leads_its_forum_and_its_author_can_edit_and_delete_it(visitor):
    form = {"forum": "books", "title": "A <b>title</b>", "body": "Some text"}
    page = visitor.post("/submit", data=form)
    assert "Your thread was posted." in page.text
    assert "A &lt;b&gt;title" in page.text
    path = page.url.path
    assert titles(visitor.get("/f/books?sort=new").text)[0] == "A &lt;b&gt;title&lt;/b&gt;"
    assert visitor.get(f"/user/{ME}/latest").url.path == path
    changed = visitor.post(f"{path}/edit", data={"title": "Other", "body": "Text"})
    assert "Your thread was changed." in changed.text
    assert "Your thread was deleted." in visitor.post(f"{path}/delete").text
    assert visitor.get(path).status_code == 404


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ({"forum": "books", "title": "", "body": "x"}, "A title is needed."),
        ({"forum": "nowhere", "title": "x", "body": "x"}, "Please choose a forum."),
        ({"forum": "books", "title": "x" * 81, "body": "x"}, "A title has at most 80 letters."),
    ],
)
def test_a_wrong_form_is_refused_with_a_reason_and_keeps_what_was_written(visitor, form, complaint):
    page = visitor.post("/submit", data=form)
    assert page.status_code == 422
    assert complaint in page.text
    assert f'value="{form["title"]}"' in page.text
    assert "was posted" not in visitor.get("/").text


def test_comments_can_be_written_edited_and_deleted_by_their_author_only(visitor):
    thread = a_thread()
    assert "cannot be empty" in visitor.post(f"{thread.path}/reply", data={"body": " "}).text
    page = visitor.post(f"{thread.path}/reply", data={"body": "My own words"}).text
    own = re.search(rf'href="({thread.path}/comment/\d+)/edit"', page)
    assert own is not None
    assert "Changed words" in visitor.post(f"{own[1]}/edit", data={"body": "Changed words"}).text
    assert "Changed words" not in visitor.post(f"{own[1]}/delete").text
    other = next(c for c in data().comments.values() if c.author == "amber")
    path = f"{data().threads[other.thread_id].path}/comment/{other.comment_id}"
    assert visitor.post(f"{path}/delete").status_code == 403


def test_only_the_author_may_change_a_thread(visitor):
    thread = a_thread()
    for what in ("edit", "delete", "pin"):
        assert visitor.post(f"{thread.path}/{what}", data={"title": "x"}).status_code == 403
    mine = a_thread(by_me=True)
    assert "Your thread is pinned." in visitor.post(f"{mine.path}/pin").text
    assert f"Pinned: {mine.title}" in visitor.get(f"/user/{ME}").text


def test_a_crosspost_takes_the_title_and_names_its_source(visitor):
    thread = a_thread()
    form = visitor.get(f"/submit?crosspost={thread.thread_id}").text
    assert f'value="{thread.title}"' in form
    target = next(name for name in data().forums if name != thread.forum)
    posted = visitor.post(
        f"/submit?crosspost={thread.thread_id}", data={"forum": target, "title": thread.title, "body": ""}
    )
    assert posted.url.path.startswith(f"/f/{target}/")
    assert f"Crossposted from {thread.forum}" in posted.text


def test_subscriptions_are_listed(visitor):
    visitor.post("/f/books/subscription")
    mine = visitor.get("/forums?show=subscribed").text
    assert re.findall(r'href="/f/(\w+)"', mine) == ["art", "books", "movies", "travel"]
    assert "no longer subscribed" in visitor.post("/f/books/subscription").text


def test_the_bio_messages_and_blocks_show_where_they_belong(visitor):
    assert "Words about me" in visitor.post("/profile", data={"bio": "Words about me"}).text
    assert "at most 200" in visitor.post("/profile", data={"bio": "x" * 201}).text
    assert f"{ME}: Hello there" in visitor.post("/user/amber/message", data={"body": "Hello there"}).text
    assert "Hello there" in visitor.get("/messages").text
    assert "cannot write to yourself" in visitor.post(f"/user/{ME}/message", data={"body": "x"}).text
    author = next(name for name, own in data().threads_by_author.items() if name != ME and len(own) > 3)
    newest = max(data().threads_by_author[author], key=lambda t: t.order)
    path = f"/f/{newest.forum}?sort=new"
    before = [newest.title in titles(visitor.get(f"{path}&page={n}").text) for n in range(1, 6)]
    assert f"You blocked {author}." in visitor.post(f"/user/{author}/block").text
    state = visitor.app.state.sessions.get("one").state("forum")
    assert any(before)
    assert newest not in state.threads("new", forum=newest.forum)


def test_log_in_and_out(app):
    stranger = client(app, "two", login=False)
    assert "Please log in first." in stranger.get("/submit").text
    assert stranger.post(f"{a_thread().path}/vote", data={"vote": "up"}).url.path == "/login"
    assert "is wrong" in stranger.post("/login", data={"username": ME, "password": "no"}).text
    assert "You are logged in." in stranger.post("/login", data={"username": ME, "password": "secret"}).text
    assert "My profile" in stranger.get("/").text
    assert "Log in" in stranger.post("/logout").text


@pytest.mark.parametrize(
    "path",
    ["/f/nowhere", "/f/books/1", "/user/nobody", "/f/books/99999999999999999999", "/submit/x", "/user/nobody/latest"],
)
def test_what_does_not_exist_is_not_found(visitor, path):
    assert visitor.get(path).status_code == 404


@pytest.mark.parametrize(
    "query",
    ["sort=best", "page=-1", "page=abc", "page=" + "9" * 50, "forum=%00", "crosspost=x", "crosspost=" + "9" * 5000],
)
def test_odd_queries_do_no_harm(visitor, query):
    for path in ("/", "/f/books", "/search", "/forums", "/submit", "/user/amber"):
        assert visitor.get(f"{path}?{query}").status_code == 200


def test_sessions_do_not_see_each_other_and_a_reset_forgets(app):
    one, two = client(app, "one", login=True), client(app, "two", login=True)
    thread = a_thread()
    for path, form in (
        ("/submit", {"forum": "books", "title": "Private"}),
        (f"{thread.path}/reply", {"body": "Private"}),
    ):
        one.post(path, data=form)
    seen = ["/f/books?sort=new", thread.path, f"/user/{ME}"]
    assert any("Private" in one.get(path).text for path in seen)
    assert not any("Private" in two.get(path).text for path in seen)
    again = client(app, "one", login=True)
    assert not any("Private" in again.get(path).text for path in seen)


def test_changes_leave_the_base_data_as_it_was():
    base = build(3)
    state = ForumState(base, ME)
    thread = next(iter(base.threads.values()))
    state.edit_thread(thread, "x", "y")
    state.delete_thread(thread.thread_id + 1)
    state.submit("books", "x", "y")
    state.reply(thread.thread_id, "x")
    state.subscriptions.add("books")
    fresh = build(3)
    assert base.threads == fresh.threads
    assert base.comments_by_thread == fresh.comments_by_thread
    assert "books" not in ForumState(base, ME).subscriptions


def test_the_data_is_a_function_of_the_seed_and_of_realistic_size():
    one, two = build(1), build(1)
    assert one.threads == two.threads
    assert one.threads != build(2).threads
    assert (len(one.forums), len(one.users)) == (20, 151)
    assert len(one.threads) >= 400
    assert sum(map(len, one.comments_by_thread.values())) >= 2000
    assert len({t.points for t in one.threads.values()}) == len(one.threads)


def test_pages_are_short_enough_for_a_small_model(visitor):
    thread = max(data().comments_by_thread.items(), key=lambda item: len(item[1]))[0]
    for path in ("/", "/forums", "/f/books", "/user/amber", "/submit", data().threads[thread].path):
        text = re.sub(r"<(style|head).*?</\1>|<[^>]+>", " ", visitor.get(path).text, flags=re.DOTALL)
        assert len(text.split()) <= 110, path
