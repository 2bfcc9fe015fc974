"""Sites beside WebArena's own: named in a recipe, with addresses, log-ins and task files like any other."""

import json

import pytest

from environments.webarena.kind import WEBARENA
from environments.webarena.leases.modes import site_modes
from environments.webarena.leases.units import Mode
from environments.webarena.login.forms import LOGIN_FORMS
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.deployments import deployments_of
from environments.webarena.sites.table import WEBARENA_SITES, SiteTable
from environments.webarena.tasks.files import TaskFileError, load_tasks, needed_sites

ENTRY = {
    "task_id": 1, "sites": ["wiki"], "require_login": True, "storage_state": None, "start_url": "__WIKI__/Home",
    "geolocation": None, "intent_template": "Show it", "instantiation_dict": {}, "intent": "Show it",
    "require_reset": False, "intent_template_id": 1,
    "eval": {"eval_types": ["url_match"], "reference_url": "__DOCS__/New"},
}  # fmt: skip


def read(**options: object) -> WebArenaSettings:
    return WEBARENA.read({"sites": {"wiki": {}, "docs": {"read_only": True}}, **options}, "webarena")


def test_tasks_name_sites_of_the_recipe_and_no_others(tmp_path):
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([ENTRY]))
    names = SiteTable.of(read()).names
    (task,) = load_tasks(path, names=names)
    assert needed_sites(task, names) == ("wiki", "docs")
    with pytest.raises(TaskFileError, match=r"sites\.0: expected 'shopping', .*, found 'wiki'"):
        load_tasks(path)
    path.write_text(json.dumps([ENTRY | {"start_url": "__WIKIS__/"}]))
    with pytest.raises(TaskFileError, match="start_url: expected an address on one of the sites"):
        load_tasks(path, names=names)


def test_what_is_read_only_is_shared(tmp_path):
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([ENTRY]))
    table = SiteTable.of(read())
    (task,) = load_tasks(path, names=table.names)
    assert site_modes(task, None, table) == {"wiki": Mode.READ, "docs": Mode.READ}
    assert site_modes(task, {task.task_id: True}, table) == {"wiki": Mode.WRITE, "docs": Mode.READ}


def test_addresses_come_from_the_recipe_or_the_sites_variables(monkeypatch):
    monkeypatch.setenv("DOCS", "http://docs.test")
    found = deployments_of(read(deployments=[{"name": "own", "addresses": {"wiki": "http://wiki.test:81"}}]))
    assert dict(found["own"].addresses.bases) == {"wiki": "http://wiki.test:81", "docs": "http://docs.test"}
    with pytest.raises(ValueError, match="site: expected one of shopping, .*wiki, docs, found 'wikis'"):
        deployments_of(read(deployments=[{"name": "own", "addresses": {"wikis": "http://wiki.test:81"}}]))


def test_a_log_in_of_the_recipe_takes_the_place_of_ours():
    mine = {"path": "/enter", "logout": "/leave$", "refused": ".no"}
    forms = SiteTable.of(read(login_forms={"wiki": mine, "reddit": mine})).forms
    assert forms["wiki"].path == forms["reddit"].path == "/enter"
    assert forms["wiki"].logout.search("/a/leave")
    assert forms["gitlab"] == LOGIN_FORMS["gitlab"]
    assert SiteTable.of(WebArenaSettings()) == WEBARENA_SITES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": {"Wiki": {}}}, "sites: expected names such as wiki, .*found 'Wiki'"),
        ({"sites": {"shopping": {}}}, "found 'shopping'"),
        ({"sites": {"shop_root": {}}}, "found 'shop_root'"),
        ({"sites": {"wiki": {"writes": True}}}, "writes"),
        ({"login_forms": {"blog": {}}}, "login_forms: blog: no such site"),
        ({"login_forms": {"wiki": {"logout": "("}}}, r"logout: expected a regular expression, found '\('"),
        ({"login_forms": {"wiki": {"lifetime_s": 0}}}, "lifetime_s"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        read(**options)
