"""The code host's pages: what visitors can do, what they are told, and that sessions are private."""

from __future__ import annotations

import re
import time
from datetime import date

import pytest
from lxml import html
from starlette.testclient import TestClient

from sites.code.data import ME, ROLES, TODAY
from sites.code.generation import build
from sites.code.issue_pages import ISSUES_PER_PAGE
from sites.code.site import CODE
from sites.code.state import CodeState

DATA = build(0)
MANAGED = next(p for p in DATA.projects.values() if p.members[ME] in ("Maintainer", "Owner"))
WRITTEN = next(p for p in DATA.projects.values() if p.members[ME] == "Developer")
AT = f"/{MANAGED.path}"


@pytest.fixture
def visitor(app):
    """A client whose session is fresh and logged in."""
    return client(app, "one", login=True)


def client(app, token: str, login: bool) -> TestClient:
    app.state.sessions.reset(token, login=["code"] if login else [])
    return TestClient(app, base_url=f"http://code.{token}.localhost")


def text(page, css: str) -> str:
    found = html.fromstring(page.text).cssselect(css)
    assert found, f"nothing matches {css} on {page.url}"
    return " ".join(found[0].text_content().split())


def links(page, css: str = "main .item a") -> list[str]:
    return [link.text_content() for link in html.fromstring(page.text).cssselect(css)]


def errors(page) -> list[str]:
    return [e.text_content() for e in html.fromstring(page.text).cssselect("[role=alert]")]


def flashes(page) -> list[str]:
    return [e.text_content() for e in html.fromstring(page.text).cssselect("[role=status]")]


def an_issue(state: str = "open"):
    return next(issue for issue in MANAGED.issues.values() if issue.state == state)


def a_request(state: str = "open", draft: bool = False):
    for project in DATA.projects.values():
        for item in project.requests.values():
            if (item.state, item.draft) == (state, draft):
                return f"/{project.path}/merge_requests/{item.number}", project, item
    raise AssertionError("no such merge request")


# -- data -----------------------------------------------------------------------------------------


def test_the_data_have_a_realistic_size_and_depend_on_the_seed_alone():
    assert len(DATA.projects) == 28
    assert len(DATA.users) == 25
    for project in DATA.projects.values():
        assert len(project.commits) >= 30
        assert len({commit.author for commit in project.commits}) >= 3
        assert [c.day for c in project.commits] == sorted((c.day for c in project.commits), reverse=True)
        assert project.commits[0].day <= TODAY
        assert len({issue.title for issue in project.issues.values()}) == len(project.issues) == 18
        assert "Owner" in project.members.values()
        assert set(project.members.values()) <= set(ROLES)
    assert build(0).projects == DATA.projects
    assert build(1).projects != DATA.projects


def test_stars_are_never_a_tie():
    assert len({project.stars for project in DATA.projects.values()}) == len(DATA.projects)


def test_a_fresh_state_costs_microseconds():
    start = time.process_time()
    for _ in range(1000):
        CODE.new_state(DATA, True)
    assert (time.process_time() - start) / 1000 < 200e-6


# -- finding --------------------------------------------------------------------------------------


def test_search_finds_projects_of_the_same_name_in_all_groups_and_users_of_similar_names(visitor):
    found = links(visitor.get("/search?q=web/api"))
    assert found == sorted(f"{group}/api" for group in ("web", "data", "infra", ME))
    users = links(visitor.get("/search?q=ana"), "main p a")
    assert users == ["ana", "dana"]
    assert "No projects here" in visitor.get("/search?q=nothing").text


def test_projects_are_filtered_by_group_sorted_and_paged(visitor):
    page = visitor.get("/projects?group=web&sort=Most+stars")
    stars = [int(n) for n in re.findall(r"(\d+) stars", page.text)]
    assert len(stars) == 4
    assert stars == sorted(stars, reverse=True)
    first, last = visitor.get("/projects"), visitor.get("/projects?page=99")
    assert "Page 1 of 5" in first.text
    assert "Page 5 of 5" in last.text
    assert "Next" not in links(last, ".pages a")


def test_a_star_counts_once_can_be_taken_back_and_leads_back_to_the_list(visitor):
    page = visitor.post(f"{AT}/star", data={"back": "group=web&sort=Name"})
    assert str(page.url).endswith("/projects?group=web&sort=Name")
    assert flashes(page) == [f"You starred {MANAGED.path}."]
    assert f"{MANAGED.stars + 1} stars" in visitor.get(AT).text
    assert text(visitor.post(f"{AT}/star"), "#star") == "Star"
    assert f"{MANAGED.stars} stars" in visitor.get(AT).text


# -- people ---------------------------------------------------------------------------------------


def test_a_profile_shows_only_the_fields_that_are_filled_in(visitor):
    without = next(user for user in DATA.users.values() if not user.email and user.company)
    page = visitor.get(f"/users/{without.name}")
    assert "Email" not in page.text
    assert text(page, "#company") == without.company


def test_status_and_profile_can_be_changed_and_a_long_status_is_refused(visitor):
    page = visitor.post("/status", data={"status": "In a meeting", "clear": "3 hours"})
    assert (text(page, "#status"), text(page, "#clear")) == ("In a meeting", "3 hours")
    assert text(visitor.post("/status", data={"status": "Busy"}), "#clear") == "never"
    refused = visitor.post("/status", data={"status": "x" * 61})
    assert refused.status_code == 422
    assert errors(refused) == ["A status has at most 60 letters."]
    assert text(visitor.post("/profile", data={"location": "Oslo"}), "#location") == "Oslo"


def test_to_do_items_are_filtered_and_go_when_they_are_done(visitor):
    todo = DATA.todos[0]
    address = f"/todos?type={todo.kind}&author={todo.author}&show=pending"
    before = text(visitor.get(address), "#count")
    page = visitor.post(f"/todos/{todo.number}/done", data={"back": address.split("?")[1]})
    assert str(page.url).endswith(address)
    assert int(text(page, "#count").split()[1]) == int(before.split()[1]) - 1
    assert links(visitor.get("/todos?show=done")) == [todo.title]
    assert visitor.post("/todos/999/done").status_code == 404


def test_only_the_right_password_logs_in_and_logging_out_hides_what_is_not_public(app):
    visitor = client(app, "two", login=False)
    private = next(p for p in DATA.projects.values() if p.visibility != "Public")
    assert visitor.get(f"/{private.path}").status_code == 404
    assert visitor.post("/login", data={"username": ME, "password": "wrong"}).status_code == 422
    visitor.post("/login", data={"username": ME, "password": "secret"})
    assert visitor.get(f"/{private.path}").status_code == 200
    visitor.post("/logout")
    assert visitor.get(f"/{private.path}").status_code == 404


def test_whoever_is_not_logged_in_is_sent_to_the_log_in_page(app):
    visitor = client(app, "three", login=False)
    public = next(p for p in DATA.projects.values() if p.visibility == "Public")
    for path in ("/todos", "/status", f"/{public.path}/issues/new", f"/{public.path}/settings", "/projects/new"):
        page = visitor.get(path)
        assert page.url.path == "/login", path
        assert flashes(page) == ["Please log in first."]


# -- files ----------------------------------------------------------------------------------------


def test_folders_and_files_can_be_opened_and_a_change_is_a_commit_on_its_branch(visitor):
    assert links(visitor.get(AT), "#files a")[:2] == ["docs", "src"]
    assert links(visitor.get(f"{AT}/folder/main/docs"), "#files a") == ["guide.md"]
    page = visitor.post(f"{AT}/edit/next/docs/guide.md", data={"text": "new words", "message": "Say it better"})
    assert text(page, "#text") == "new words"
    assert links(visitor.get(f"{AT}/commits?branch=next"))[0] == "Say it better"
    assert "Say it better" not in links(visitor.get(f"{AT}/commits"))
    assert "new words" not in visitor.get(f"{AT}/file/main/docs/guide.md").text


def test_a_new_file_needs_a_name_that_is_free(visitor):
    for name, message in (
        ("README.md", "There is already a file README.md on main."),
        ("../x", "A file name has letters, digits, dots and hyphens."),
        ("", "A file name has letters, digits, dots and hyphens."),
    ):
        page = visitor.post(f"{AT}/new/main", data={"path": name, "text": "x"})
        assert errors(page) == [message], name
    page = visitor.post(f"{AT}/new/main", data={"path": "lib/a.py", "text": "x"})
    assert text(page, "#text") == "x"
    assert "lib" in links(visitor.get(AT), "#files a")


def test_commits_are_counted_by_author_and_day(visitor):
    author, day = MANAGED.commits[5].author, MANAGED.commits[5].day
    wanted = sum(c.author == author and c.day == day for c in MANAGED.commits)
    page = visitor.get(f"{AT}/commits?author={author}&since={day}&until={day}")
    assert text(page, "#count") == f"Commits: {wanted}"
    assert errors(visitor.get(f"{AT}/commits?since=2024-05-02&until=2024-05-01")) == [
        "The range ends before it starts."
    ]
    assert errors(visitor.get(f"{AT}/commits?since=yesterday")) == ["A day is written as 2024-06-03."]
    assert visitor.get(f"{AT}/commits/{MANAGED.commits[0].sha}").status_code == 200
    assert visitor.get(f"{AT}/commits/none").status_code == 404


def test_a_branch_needs_a_free_name_and_starts_with_the_files_of_its_source(visitor):
    visitor.post(f"{AT}/edit/next/README.md", data={"text": "from next"})
    page = visitor.post(f"{AT}/branches/new", data={"name": "next", "source": "main"})
    assert errors(page) == ["There is already a branch next."]
    assert visitor.post(f"{AT}/branches/new", data={"name": "A b", "source": "main"}).status_code == 422
    visitor.post(f"{AT}/branches/new", data={"name": "try", "source": "next"})
    assert text(visitor.get(f"{AT}/file/try/README.md"), "#text") == "from next"
    assert "Change README.md" in links(visitor.get(f"{AT}/commits?branch=try"))


def test_a_fork_has_the_files_but_not_the_issues_and_its_name_must_be_free(visitor):
    taken = visitor.post("/web/api/fork", data={"name": "api", "group": "data"})
    assert errors(taken) == ["There is already a project data/api."]
    page = visitor.post("/web/api/fork", data={"name": "api", "group": "games"})
    assert text(page, "#source") == "Forked from web/api"
    assert text(visitor.get("/games/api/issues"), "#count") == "Issues: 0"
    assert text(visitor.get("/games/api/members"), "#count") == "Members: 1"


# -- issues ---------------------------------------------------------------------------------------


def test_issues_are_filtered_and_long_lists_are_paged(visitor):
    label = sorted(MANAGED.labels)[0]
    shown = [i for i in MANAGED.issues.values() if i.state == "closed" and label in i.labels]
    assert text(visitor.get(f"{AT}/issues?state=closed&label={label}"), "#count") == f"Issues: {len(shown)}"
    everything = visitor.get(f"{AT}/issues?state=all")
    assert text(everything, "#count") == "Issues: 18"
    assert len(links(everything)) == ISSUES_PER_PAGE
    assert "page=2" in everything.text
    title = an_issue().title
    assert title in links(visitor.get(f"{AT}/issues?find={title.lower()}"))


def test_an_issue_needs_a_title_and_a_real_due_date(visitor):
    page = visitor.post(f"{AT}/issues/new", data={"title": "", "due": "soon"})
    assert page.status_code == 422
    assert errors(page) == ["An issue needs a title.", "A due date is written as 2024-06-03."]


def test_a_new_issue_keeps_what_its_form_said(visitor):
    labels = sorted(MANAGED.labels)[:2]
    form = {
        "title": "New thing",
        "body": "Why not",
        "label": labels,
        "assignee": ME,
        "milestone": "v1.1",
        "due": "2024-07-01",
    }
    page = visitor.post(f"{AT}/issues/new", data=form)
    assert page.url.path == f"{AT}/issues/19"
    for name, wanted in (
        ("title", "New thing"),
        ("labels", " ".join(labels)),
        ("assignee", ME),
        ("milestone", "v1.1"),
        ("due", "2024-07-01"),
        ("state", "open"),
    ):
        assert text(page, f"#{name}") == wanted
    assert "New thing" in links(visitor.get(f"{AT}/milestones/2"), "#issues a")


def test_editing_an_issue_says_how_many_are_left_with_the_former_assignee(visitor):
    issue = next(i for i in MANAGED.issues.values() if i.assignee and i.state == "open")
    left = sum(i.assignee == issue.assignee and i.state == "open" for i in MANAGED.issues.values()) - 1
    page = visitor.post(f"{AT}/issues/{issue.number}/edit", data={"title": issue.title})
    assert flashes(page)[1] == f"Open issues of {issue.assignee}: {left}"
    assert text(page, "#assignee") == "nobody"


def test_an_issue_can_be_closed_opened_again_and_commented_on(visitor):
    path = f"{AT}/issues/{an_issue().number}"
    assert text(visitor.post(f"{path}/toggle"), "#state") == "closed"
    assert text(visitor.post(f"{path}/toggle"), "#state") == "open"
    page = visitor.post(f"{path}/comment", data={"body": "<b>bold</b>"})
    assert text(page, "#comments .comment:last-child") == f"{ME}: <b>bold</b>"
    assert errors(visitor.post(f"{path}/comment", data={"body": " "})) == ["Write a comment first."]


# -- planning -------------------------------------------------------------------------------------


def test_a_milestone_cannot_end_before_it_starts_nor_share_a_title(visitor):
    form = {"title": "v1.0", "start": "2024-07-01", "end": "2024-06-01"}
    assert errors(visitor.post(f"{AT}/milestones/new", data=form)) == [
        "A milestone cannot end before it starts.",
        "There is already a milestone v1.0.",
    ]
    page = visitor.post(f"{AT}/milestones/new", data={"title": "v9", "start": "2024-07-01"})
    assert (text(page, "#start"), text(page, "#end"), text(page, "#state")) == ("2024-07-01", "none", "active")
    assert text(visitor.post(f"{page.url.path}/toggle"), "#state") == "closed"


def test_a_new_label_can_be_given_to_issues_and_needs_a_free_title(visitor):
    visitor.post(f"{AT}/labels/new", data={"title": "help wanted", "note": "For new people"})
    assert text(visitor.get(f"{AT}/labels"), "#label-help-wanted") == "For new people"
    assert "help wanted" in visitor.get(f"{AT}/issues/new").text
    assert errors(visitor.post(f"{AT}/labels/new", data={"title": "help wanted"})) == [
        "There is already a label help wanted."
    ]


# -- merge requests -------------------------------------------------------------------------------


def test_merging_brings_the_files_and_commits_of_the_source(app):
    visitor = client(app, "four", login=True)
    path, project, item = a_request()
    visitor.post(f"/{project.path}/edit/{item.source}/README.md", data={"text": "merged text"})
    page = visitor.post(f"{path}/merge")
    assert text(page, "#state") == "merged"
    assert text(visitor.get(f"/{project.path}/file/main/README.md"), "#text") == "merged text"
    assert links(visitor.get(f"/{project.path}/commits"))[:2] == [f"Merge {item.source} into main", "Change README.md"]


def test_drafts_cannot_be_merged_until_they_are_ready(visitor):
    path, _, _ = a_request(draft=True)
    refused = visitor.post(f"{path}/merge")
    assert refused.status_code == 422
    assert errors(refused) == ["It cannot be merged: it must be open, ready and have its branches."]
    assert flashes(visitor.post(f"{path}/draft")) == ["It is ready now."]
    assert text(visitor.post(f"{path}/merge"), "#state") == "merged"
    assert errors(visitor.post(f"{path}/close")) == ["It was merged already."]


def test_an_approval_can_be_given_and_taken_back(visitor):
    path, _, _ = a_request()
    assert text(visitor.post(f"{path}/approve"), "#approved") == ME
    assert text(visitor.post(f"{path}/approve"), "#approved") == "nobody"
    assert text(visitor.post(f"{path}/comment", data={"body": "Fine"}), "#comments .comment:last-child").endswith(
        ": Fine"
    )


def test_a_merge_request_needs_a_title_and_two_branches(visitor):
    form = {"source": "main", "target": "main", "title": ""}
    assert errors(visitor.post(f"{AT}/merge_requests/new", data=form)) == [
        "A merge request needs a title.",
        "Choose two different branches.",
    ]
    page = visitor.post(f"{AT}/merge_requests/new", data={"source": "next", "target": "main", "title": "Go"})
    assert text(page, "#branches") == "next into main"
    assert links(visitor.get(f"{AT}/merge_requests"))[0] == "Go"


# -- members and settings -------------------------------------------------------------------------


def test_only_known_strangers_can_be_invited(visitor):
    stranger = next(name for name in DATA.users if name not in MANAGED.members)
    for user, message in (
        ("", "Write a user name."),
        ("zoe", "There is no user zoe."),
        (ME, f"{ME} is a member already."),
    ):
        page = visitor.post(f"{AT}/members/invite", data={"user": user, "role": "Guest"})
        assert errors(page) == [message]
    page = visitor.post(f"{AT}/members/invite", data={"user": stranger, "role": "Reporter"})
    assert text(page, f"#role-{stranger}") == "Reporter"


def test_roles_can_be_changed_and_removing_asks_once_more(visitor):
    user = next(name for name in MANAGED.members if name != ME)
    page = visitor.post(f"{AT}/members/{user}/edit", data={"role": "Guest"})
    assert text(page, f"#role-{user}") == "Guest"
    asked = visitor.get(f"{AT}/members/{user}/remove")
    assert f"Remove {user}?" in asked.text
    assert user in visitor.get(f"{AT}/members").text
    assert f"role-{user}" not in visitor.post(f"{AT}/members/{user}/remove").text


def test_settings_are_several_forms_with_one_label(visitor):
    page = visitor.get(f"{AT}/settings")
    assert page.text.count("Save changes") == 2
    assert text(visitor.post(f"{AT}/settings/visibility", data={"visibility": "Public"}), "[role=status]")
    assert text(visitor.get(AT), "#visibility") == "Public"
    visitor.post(f"{AT}/settings/about", data={"about": "Something else"})
    assert text(visitor.get(AT), "#about") == "Something else"
    visitor.post(f"{AT}/settings/default_branch", data={"default_branch": "next"})
    assert text(visitor.get(f"{AT}/branches"), "#default") == "next"
    assert visitor.post(f"{AT}/settings/visibility", data={"visibility": "Secret"}).status_code == 422
    assert visitor.post(f"{AT}/settings/name", data={"name": "x"}).status_code == 404


def test_deleting_a_project_needs_its_full_name(visitor):
    page = visitor.post(f"{AT}/settings/delete", data={"confirm": MANAGED.name})
    assert errors(page) == [f"Write {MANAGED.path} to delete the project."]
    assert visitor.get(AT).status_code == 200
    visitor.post(f"{AT}/settings/delete", data={"confirm": MANAGED.path})
    assert visitor.get(AT).status_code == 404
    assert MANAGED.path not in visitor.get(f"/projects?group={MANAGED.group}").text


def test_developers_may_write_but_not_manage(visitor):
    page = visitor.get(f"/{WRITTEN.path}")
    assert "New file" in page.text
    assert "Settings" not in page.text
    for path in ("settings", "settings/delete", "members/invite"):
        assert visitor.get(f"/{WRITTEN.path}/{path}").status_code == 403


def test_a_new_project_needs_a_free_name_of_small_letters(visitor):
    for name, message in (
        ("Big Name", "A name has 2 to 31 small letters, digits or hyphens and starts with a letter."),
        ("api", "There is already a project web/api."),
    ):
        page = visitor.post("/projects/new", data={"name": name, "group": "web"})
        assert errors(page) == [message]
    page = visitor.post(
        "/projects/new", data={"name": "orbit", "group": "web", "visibility": "Public", "license": "MIT"}
    )
    assert page.url.path == "/web/orbit"
    assert links(page, "#files a") == ["LICENSE", "README.md"]
    assert text(visitor.get("/web/orbit/members"), f"#role-{ME}") == "Owner"


# -- sessions -------------------------------------------------------------------------------------


def test_sessions_share_nothing_but_the_base_data(app):
    one, two = client(app, "five", login=True), client(app, "six", login=True)
    one.post(f"{AT}/settings/delete", data={"confirm": MANAGED.path})
    assert one.get(AT).status_code == 404
    assert two.get(AT).status_code == 200
    assert build(0).projects == app.state.sessions.data["code"].projects


def test_a_state_never_writes_to_the_base_data():
    data = build(0)
    state = CodeState(data, ME)
    project = data.projects[MANAGED.path]
    state.commit_files(project, "main", {"a.txt": "x", "README.md": None}, "Change")
    changed = state.project(MANAGED.path)
    assert "a.txt" in changed.branches["main"]
    assert "README.md" not in changed.branches["main"]
    assert data.projects == DATA.projects
    assert changed.updated == TODAY == date(2024, 6, 3)


def test_unknown_things_are_not_found(visitor):
    for path in (
        "/users/nobody",
        "/no/project",
        f"{AT}/issues/99",
        f"{AT}/merge_requests/99",
        f"{AT}/milestones/99",
        f"{AT}/file/none/README.md",
        f"{AT}/file/main/none",
        f"{AT}/folder/main/none",
        f"{AT}/members/zoe/edit",
    ):
        assert visitor.get(path).status_code == 404, path


def test_every_page_is_free_of_scripts_but_the_skip_link_and_has_one_heading(visitor):
    pages = ["", "/issues", "/issues/1", "/issues/1/edit", "/issues/new", "/labels", "/labels/new", "/milestones"]
    pages += ["/milestones/1", "/milestones/new", "/merge_requests", "/merge_requests/1", "/merge_requests/new"]
    pages += ["/members", "/members/invite", "/commits", "/branches", "/branches/new", "/fork", "/settings"]
    pages += ["/settings/repository", "/settings/delete", "/new/main", "/file/main/README.md", "/edit/main/README.md"]
    paths = [f"{AT}{page}" for page in pages] + ["/", "/projects", "/projects/new", "/todos", "/status", "/profile"]
    for path in paths:
        root = html.fromstring(visitor.get(path).text)
        assert not root.cssselect("script:not([data-skip-link])"), path
        assert len(root.cssselect("h1")) == 1, path
        named = {label.get("for") for label in root.cssselect("label")}
        fields = root.cssselect("main input:not([type=hidden]), main select, main textarea")
        assert all(field.get("id") in named or field.get("aria-label") for field in fields), path
