"""Episodes in real Chromium on sites that behave like WebArena's, on one host name and told apart by port."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from environments.admission import AskedFor, Asking
from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.browser.slot import BrowserSlot
from environments.contract import check_environment
from environments.webarena.kind import WEBARENA
from environments.webarena.leases.admission import SiteAdmission
from environments.webarena.leases.ledger import SiteLedger
from environments.webarena.settings import DeploymentSettings, ResetSettings, WebArenaSettings
from environments.webarena.sites.deployments import deployments_of
from environments.webarena.sites.episode_addresses import Deployment, resolver_rules
from environments.webarena.sites.shared import WebArenaSites, make_sites
from environments.webarena.world import WebArenaWorld
from judges.interface import AnswerQuestion
from judges.settings import EvaluatorSettings
from judges.verdicts import Evaluators
from records.deadline import Deadline
from records.environment import Action, Observation
from records.failures import EpisodeFailed, Failure, FailureKind
from tests.environments.lab_site import serving, target
from tests.environments.webarena.fake_sites import ACCOUNTS, FORMS, PASSWORD, FakeResetServer, FakeSite, fake_task

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

BROWSER = BrowserSettings(wait_action_s=0.01, max_tabs=3)
WRITE_NOTE = {
    "eval_types": ["program_html"],
    "program_html": [target("__SHOPPING__/", "document.querySelector('ul').innerText", {"must_include": ["hello"]})],
    "reference_answers": None,
}


@pytest.fixture(autouse=True)
def quick_resets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reset server is asked again at once."""
    monkeypatch.setattr("environments.webarena.reset.resetters.POLL_S", 0.01)


@dataclass
class World:
    """The fake sites, their reset server, and everything built over them."""

    shop: FakeSite
    forum: FakeSite
    reset_server: FakeResetServer
    bases: dict[str, str]
    sites: WebArenaSites
    requests: Asking
    browser: BrowserProcess

    @property
    def ledger(self) -> SiteLedger:
        assert isinstance(self.requests.admission, SiteAdmission)
        return self.requests.admission._ledger

    def asking(self, sites: WebArenaSites, **settings: object) -> AskedFor:
        made = BrowserEnvironment(self.browser, WebArenaWorld(sites), replace(BROWSER, **settings))  # type: ignore[arg-type]
        return AskedFor(made, self.requests)

    def environment(self, **settings: object) -> AskedFor:
        return self.asking(self.sites, **settings)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeSite, FakeSite, FakeResetServer, list[int]]]:
    shop, forum = FakeSite("Shop"), FakeSite("Forum")
    server = FakeResetServer([shop, forum])
    with contextlib.ExitStack() as stack:
        yield shop, forum, server, [stack.enter_context(serving(each.app())) for each in (shop, forum, server)]


def settings_for(ports: list[int]) -> WebArenaSettings:
    shop, forum, reset = ports
    addresses = {"shopping": f"http://127.0.0.1:{shop}", "reddit": f"http://127.0.0.1:{forum}/"}
    resetting = ResetSettings(kind="http", url=f"http://127.0.0.1:{reset}", timeout_s=10)
    blue = DeploymentSettings("blue", addresses, reset=resetting)
    return WebArenaSettings(deployments=(blue,), fresh_at_start=True, login_timeout_s=60, login_margin_s=1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(served: tuple[FakeSite, FakeSite, FakeResetServer, list[int]]) -> AsyncIterator[BrowserProcess]:
    started = BrowserProcess(BROWSER, resolver_rules(deployments_of(settings_for(served[3])).values()))
    yield started
    await started.close()


@pytest_asyncio.fixture(loop_scope="module")
async def world(
    browser: BrowserProcess, served: tuple[FakeSite, FakeSite, FakeResetServer, list[int]]
) -> AsyncIterator[World]:
    shop, forum, server, ports = served
    for site in (shop, forum):
        site.__init__(site.title)  # type: ignore[misc]
    server.__init__([shop, forum])  # type: ignore[misc]
    settings = settings_for(ports)
    deployments = deployments_of(settings)
    sites = make_sites(settings, deployments, browser, ACCOUNTS, judge=Evaluators(), forms=FORMS)
    with WEBARENA.service(settings) as service:
        assert isinstance(service.admission, SiteAdmission)
        bases = dict(deployments["blue"].addresses.bases)
        yield World(shop, forum, server, bases, sites, Asking(service.admission), browser)
        shop.fault = forum.fault = ""


@pytest_asyncio.fixture(loop_scope="module")
async def env(world: World) -> AsyncIterator[AskedFor]:
    made = world.environment()
    yield made
    await made.close()


def slot_of(env: AskedFor) -> BrowserSlot:
    assert isinstance(env.env, BrowserEnvironment)
    return env.env.slot


async def do(env: AskedFor, seen: Observation, kind: str, name: str, text: str | None = None) -> Observation:
    return await env.step(Action(kind, text, seen.find(name).element_id))


async def failure_of(work: object) -> Failure:
    with pytest.raises(EpisodeFailed) as caught:
        await work  # type: ignore[misc]
    return caught.value.failure


def held(world: World) -> tuple[int, int]:
    """Leases that are out, and contexts that are open."""
    browser = world.browser._browser
    assert browser is not None
    return world.ledger.held, len(browser.contexts)


async def test_it_keeps_the_contract(world: World) -> None:
    await check_environment(world.environment, fake_task("__SHOPPING__/page/1"))
    assert world.ledger.held == 0


async def test_an_episode_starts_logged_in_and_ends_with_a_verdict_on_pages_of_its_own(
    world: World, env: AskedFor
) -> None:
    seen = await env.reset(fake_task(evaluation=WRITE_NOTE))
    assert "agent Log out" in seen.page_text
    assert seen.url == "__SHOPPING__/"
    seen = await do(env, seen, "type", "Note", "hello there")
    seen = await do(env, seen, "click", "Save")
    seen = await do(env, seen, "click", "One")
    world.shop.visits.clear()
    verdict = await env.evaluate(None)
    assert verdict.outcome == 1.0, verdict.evidence
    assert world.shop.visits == ["/"], "the agent's own page is not navigated"
    assert held(world) == (0, 0), "a finished episode keeps neither its sites nor its pages"
    with pytest.raises(RuntimeError, match="call reset first"):
        await env.evaluate(None)


async def test_a_session_is_lent_again_and_two_episodes_never_share_one(world: World) -> None:
    one, two = world.environment(), world.environment()
    await one.reset(fake_task())
    await two.reset(fake_task())
    assert world.shop.logins == 2
    await one.evaluate(None)
    await one.reset(fake_task())
    assert world.shop.logins == 2
    await one.close()
    await two.close()


async def test_what_the_sites_stored_at_the_log_in_is_there(world: World, env: AskedFor) -> None:
    await env.reset(fake_task("__SHOPPING__/page/1 |AND| __REDDIT__/page/1", ("shopping", "reddit")))
    kept = [await tab.page.evaluate("() => localStorage.visited") for tab in slot_of(env).tabs]
    assert kept == ["Shop", "Forum"]
    assert [site.visits.count("/") for site in (world.shop, world.forum)] == [1, 1], "the log-ins' own visits"


async def test_two_sites_on_one_host_name_keep_their_sessions_apart(world: World, env: AskedFor) -> None:
    assert world.bases["reddit"].startswith("http://reddit.blue.webarena.test:")
    task = fake_task("__SHOPPING__/ |AND| __REDDIT__/ |AND| __SHOPPING__/page/2", ("shopping", "reddit"))
    seen = await env.reset(task)
    assert "tabs 0 Shop (current) |" in seen.text
    for tab, name in ((1, "Forum"), (0, "Shop"), (1, "Forum"), (2, "Page 2")):
        seen = await env.step(Action("switch_tab", str(tab)))
        assert name in seen.page_text
        assert "agent Log out" in seen.page_text
        if tab < 2:
            seen = await do(env, seen, "click", "Start")
            assert "agent Log out" in seen.page_text
    assert seen.url == "__SHOPPING__/page/2"


async def test_without_an_alias_the_two_sites_would_clash(world: World, env: AskedFor) -> None:
    """What the alias is for: the same browser on the real addresses loses the first site's session."""
    context = await world.browser.open_context(
        ",".join(["<-loopback>", *world.sites.deployments["blue"].real_addresses.bases.values()])
    )
    page = await context.new_page()
    shop, forum = world.sites.deployments["blue"].real_addresses.bases.values()
    for base in (shop, forum):
        await page.goto(f"{base}/login")
        await page.fill("input[name=user]", ACCOUNTS.of("shopping").username.reveal())
        await page.fill("input[name=word]", PASSWORD)
        await page.press("input[name=word]", "Enter")
        await page.wait_for_selector("a[href='/logout']", state="attached", timeout=10_000)
    await page.goto(shop)
    assert await page.query_selector("a[href='/logout']") is None
    await context.close()


async def test_sites_that_cannot_take_an_alias_are_refused_together(world: World) -> None:
    bases = {"shopping": "https://host.test:1", "reddit": "https://host.test:2"}
    blue = world.sites.deployments["blue"]
    clashing = replace(blue, addresses=replace(blue.addresses, bases=bases))
    env = world.asking(replace(world.sites, deployments={"blue": clashing}))
    failure = await failure_of(env.reset(fake_task(sites=("shopping", "reddit"))))
    assert (failure.kind, failure.code.name) == (FailureKind.TASK, "hosts_clash")
    assert "different host names" in failure.detail
    assert world.ledger.held == 0


async def test_an_episode_reaches_its_own_sites_only(world: World, env: AskedFor) -> None:
    world.shop.links = {"Forum": world.bases["reddit"], "World": "http://example.com/"}
    seen = await env.reset(fake_task())
    for name in ("Forum", "World"):
        after = await do(env, seen, "click", name)
        assert after.url == "__SHOPPING__/"
        assert after.feedback is not None
    reach = "url => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'refused')"
    page = slot_of(env).tab.page
    assert await page.evaluate(reach, world.bases["shopping"]) == "reached"
    real = world.sites.deployments["blue"].real_addresses.bases["reddit"]
    for url in (world.bases["reddit"], real, world.sites.settings.deployments[0].reset.url, "http://example.com"):
        assert await page.evaluate(reach, url) == "refused", url
    assert world.forum.visits == []


async def test_place_and_viewport_are_the_tasks(world: World, env: AskedFor) -> None:
    raw = {"geolocation": {"latitude": 40.5, "longitude": -79.25}, "viewport_size": {"width": 900, "height": 500}}
    seen = await env.reset(fake_task("__SHOPPING__/where", raw=raw))
    for _ in range(20):
        if "nowhere" not in seen.page_text:
            break
        seen = await env.step(Action("wait"))
    assert "40.5 -79.25 900x500" in seen.page_text


async def test_a_session_that_ends_in_the_middle_of_an_episode_is_a_failure_and_never_a_verdict(
    world: World, env: AskedFor
) -> None:
    seen = await env.reset(fake_task())
    world.shop.expire()
    failure = await failure_of(do(env, seen, "click", "One"))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "session_expired")
    assert "__SHOPPING__/page/1" in failure.detail
    assert held(world) == (0, 0)
    seen = await env.reset(fake_task())
    assert "agent Log out" in seen.page_text
    assert world.shop.logins == 2


async def test_a_session_that_ended_before_the_episode_is_replaced_at_once(world: World, env: AskedFor) -> None:
    await env.reset(fake_task())
    await env.evaluate(None)
    world.shop.expire()
    assert "agent Log out" in (await env.reset(fake_task())).page_text
    assert world.shop.logins == 2


async def test_a_session_that_is_gone_when_the_episode_is_judged_is_no_evidence(world: World, env: AskedFor) -> None:
    await env.reset(fake_task(evaluation=WRITE_NOTE))
    world.shop.expire()
    assert (await failure_of(env.evaluate("done"))).code.name == "session_expired"
    assert held(world) == (0, 0)


async def test_an_agent_that_logs_itself_out_is_judged(world: World, env: AskedFor) -> None:
    seen = await do(env, await env.reset(fake_task()), "click", "Log out")
    assert "Log in" in seen.page_text
    seen = await do(env, seen, "click", "One")
    assert (await env.evaluate(None)).outcome == 0.0
    await env.reset(fake_task())
    assert world.shop.logins == 2, "its session was not lent again"


async def test_a_log_in_that_no_longer_works_fails_the_episode_without_its_password(
    world: World, env: AskedFor, caplog: pytest.LogCaptureFixture
) -> None:
    world.shop.fault = "broken_login"
    with caplog.at_level(logging.DEBUG):
        failure = await failure_of(env.reset(fake_task()))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "login_failed")
    for text in (
        failure.detail,
        caplog.text,
        repr(world.sites),
        repr(world.sites.logins),
        repr(vars(env.env)),
        repr(vars(env.env.world)),
    ):
        assert PASSWORD not in text
    assert held(world) == (0, 0)


@pytest.mark.parametrize(("fault", "code", "wait_s"), [("error", "site_error", 30.0), ("hang", "step_timeout", 1.5)])
async def test_a_site_with_a_fault_at_the_start_is_a_failure(
    world: World, env: AskedFor, fault: str, code: str, wait_s: float
) -> None:
    await env.reset(fake_task())
    await env.evaluate(None)
    world.shop.fault = fault
    hasty = world.environment()
    began = time.monotonic()
    failure = await failure_of(hasty.reset(fake_task(), deadline=Deadline(wait_s)))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, code)
    assert time.monotonic() - began < 30
    assert held(world) == (0, 0)
    world.shop.fault = ""
    assert (await env.reset(fake_task())).title == "Shop"


@pytest.mark.parametrize(("link", "code", "wait_s"), [("Boom", "site_error", 8.0), ("Hang", "site_timeout", 1.5)])
async def test_a_page_with_a_fault_in_the_middle_is_a_failure(
    world: World, link: str, code: str, wait_s: float
) -> None:
    env = world.environment(navigation_timeout_s=wait_s)
    failure = await failure_of(do(env, await env.reset(fake_task()), "click", link))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, code)
    assert held(world) == (0, 0)


@pytest.mark.parametrize(("fault", "code", "wait_s"), [("error", "site_error", 30.0), ("hang", "step_timeout", 1.5)])
async def test_a_site_with_a_fault_when_the_episode_is_judged_is_no_verdict(
    world: World, fault: str, code: str, wait_s: float
) -> None:
    env = world.environment()
    await env.reset(fake_task(evaluation=WRITE_NOTE))
    world.shop.fault = fault
    failure = await failure_of(env.evaluate("done", Deadline(wait_s)))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, code)
    await env.close()


async def test_a_site_that_goes_down_is_a_failure(world: World) -> None:
    site = FakeSite("Brief")
    with serving(site.app()) as port:
        brief = Deployment.of("blue", replace(world.sites.deployments["blue"].real_addresses, bases={
            "shopping": f"http://127.0.0.1:{port}"
        }))  # fmt: skip
        env = world.asking(replace(world.sites, deployments={"blue": brief}))
        seen = await env.reset(fake_task(require_login=False))
    failure = await failure_of(do(env, seen, "click", "One"))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "site_unreachable")
    assert (await failure_of(env.reset(fake_task(require_login=False)))).code.name == "site_unreachable"
    assert held(world) == (0, 0)
    await env.close()


async def test_a_changing_episode_is_alone_and_the_next_one_finds_the_sites_as_they_were(world: World) -> None:
    one, two = world.environment(), world.environment()
    writing, reading = fake_task(evaluation=WRITE_NOTE), fake_task()
    seen = await one.reset(writing)
    waiting = asyncio.create_task(two.reset(reading))
    seen = await do(one, seen, "type", "Note", "left behind")
    await do(one, seen, "click", "Save")
    assert not waiting.done()
    assert (await one.evaluate(None)).outcome == 0.0
    seen = await waiting
    assert (world.reset_server.begun, world.shop.notes) == (1, [])
    assert "left behind" not in seen.page_text
    assert "agent Log out" in seen.page_text
    assert world.shop.stale == 0, "sessions of before the reset are not lent"
    await one.close()
    await two.close()


async def test_many_episodes_side_by_side_are_isolated_and_leave_nothing_behind(world: World) -> None:
    """Writers find only what they wrote; a session that ends meanwhile costs readers an attempt, never a verdict."""
    outcomes: list[tuple[str, float | str]] = []

    async def write(env: AskedFor, note: str) -> None:
        evaluation = {
            "eval_types": ["program_html"],
            "program_html": [target("__SHOPPING__/", "document.querySelector('ul').innerText", {"exact_match": note})],
        }
        seen = await env.reset(fake_task(evaluation=evaluation))
        await do(env, await do(env, seen, "type", "Note", note), "click", "Save")
        outcomes.append(("write", (await env.evaluate(None)).outcome))

    async def read(env: AskedFor, number: int) -> None:
        try:
            seen = await do(env, await env.reset(fake_task()), "click", "One")
            if number == 2:
                world.shop.expire()
            await do(env, seen, "click", "Back")
            outcomes.append(("read", (await env.evaluate(None)).outcome))
        except EpisodeFailed as error:
            outcomes.append(("read", error.failure.code.name))

    async def slot(index: int) -> None:
        env = world.environment()
        for number in range(2):
            await (write(env, f"note {index}.{number}") if (index + number) % 2 else read(env, index + number))
        await env.close()

    await asyncio.gather(*(slot(index) for index in range(4)))
    assert outcomes.count(("write", 1.0)) == 4
    assert set(outcomes) <= {("write", 1.0), ("read", 1.0), ("read", "session_expired")}
    assert len(outcomes) == 8
    book = world.ledger
    assert (book.granted, book.released, book.waiting) == (8, 8, 0)
    assert 3 <= world.reset_server.begun <= 4
    assert held(world) == (0, 0)


async def test_an_agent_that_writes_where_it_should_only_read_has_the_sites_reset(world: World, env: AskedFor) -> None:
    seen = await do(env, await env.reset(fake_task()), "type", "Note", "stray")
    await do(env, seen, "click", "Save")
    await env.evaluate(None)
    assert world.shop.notes == ["stray"]
    assert "stray" not in (await env.reset(fake_task())).page_text
    assert world.reset_server.begun == 1


async def test_sites_that_are_not_reset_are_a_failure_of_the_infrastructure(world: World, env: AskedFor) -> None:
    await env.reset(fake_task(evaluation=WRITE_NOTE))
    await env.evaluate(None)
    world.reset_server.kind = "failing"
    failure = await failure_of(env.reset(fake_task()))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "reset_failed")
    world.reset_server.kind, world.reset_server.running = "new", 0
    await env.reset(fake_task())


async def test_an_episode_that_keeps_its_sites_too_long_is_told(world: World, env: AskedFor) -> None:
    await env.reset(fake_task())
    assert isinstance(env.env, BrowserEnvironment)
    assert isinstance(env.env.world, WebArenaWorld)
    env.env.world._ends = 0.0
    assert (await failure_of(env.step(Action("wait")))).code.name == "lease_lost"
    assert held(world) == (0, 0)


async def test_a_cancelled_reset_gives_everything_back(world: World, env: AskedFor) -> None:
    world.shop.fault = "hang"
    starting = asyncio.create_task(env.reset(fake_task(require_login=False)))
    await asyncio.sleep(0.5)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert held(world) == (0, 0)


async def test_a_browser_that_dies_gives_the_sites_back(world: World, env: AskedFor) -> None:
    await env.reset(fake_task())
    for pid in world.browser.pids:
        os.kill(pid, signal.SIGKILL)
    assert (await failure_of(env.step(Action("wait")))).code.name == "browser_crashed"
    assert world.ledger.held == 0
    assert (await env.reset(fake_task())).title == "Shop"


async def test_references_to_the_sites_addresses_are_found_in_pages_and_answers(world: World, env: AskedFor) -> None:
    world.shop.links = {"Forum": f"{world.bases['reddit']}/f/books"}
    evaluation = {
        "eval_types": ["string_match", "program_html"],
        "reference_answers": {"must_include": ["__REDDIT__/f/books"]},
        "program_html": [target("__SHOPPING__/", "", {"must_include": ["__REDDIT__/f/books"]})],
    }
    await env.reset(fake_task(evaluation=evaluation, sites=("shopping", "reddit")))
    verdict = await env.evaluate(f"It is at {world.bases['reddit']}/f/books.")
    assert verdict.outcome == 1.0, verdict.evidence


class Echo:
    """An LLM judge that remembers what it was asked."""

    name = "echo"

    def __init__(self) -> None:
        self.asked: list[AnswerQuestion] = []

    async def matches(self, question: AnswerQuestion) -> bool:
        self.asked.append(question)
        return question.answer == question.reference.lower()

    async def same_reason(self, question: AnswerQuestion) -> bool:
        self.asked.append(question)
        return "sold out" in question.answer


def fuzzy(reference: object, note: str = "") -> dict[str, object]:
    return {
        "eval_types": ["string_match"], "reference_answers": {"fuzzy_match": reference}, "string_note": note,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("evaluation", "answer", "outcome"),
    [
        (fuzzy(["Tea"]), "tea", 1.0),
        (fuzzy(["Tea"]), "coffee", 0.0),
        (fuzzy("N/A", "It is sold out."), "It was sold out", 1.0),
        (fuzzy("N/A", "It is sold out."), "I could not find it", 0.0),
    ],
)
async def test_meanings_are_judged_by_the_judge_and_without_one_there_is_no_verdict(
    world: World, evaluation: dict[str, object], answer: str, outcome: float
) -> None:
    task, judge = fake_task(evaluation=evaluation, require_login=False), Echo()
    judged = world.asking(replace(world.sites, judge=Evaluators(judge)))
    await judged.reset(task)
    verdict = await judged.evaluate(answer)
    assert (verdict.outcome, len(judge.asked)) == (outcome, 1)
    assert "judge echo" in verdict.evidence[0]
    unjudged = world.environment()
    await unjudged.reset(task)
    failure = await failure_of(unjudged.evaluate(answer))
    assert (failure.kind, failure.code.name) == (FailureKind.JUDGE, "no_judge")
    assert held(world) == (0, 0)


class Silent(Echo):
    """An LLM judge that never answers."""

    async def matches(self, question: AnswerQuestion) -> bool:
        self.asked.append(question)
        return await asyncio.Event().wait()


async def test_a_judge_is_waited_for_as_long_as_the_settings_say(world: World) -> None:
    patience, judge = EvaluatorSettings(answer_timeout_s=0.1), Silent()
    judged = world.asking(replace(world.sites, judge=Evaluators(judge, patience)))
    await judged.reset(fake_task(evaluation=fuzzy(["Tea"]), require_login=False))
    failure = await failure_of(judged.evaluate("tea", Deadline(1.5)))
    assert (failure.kind, failure.code.name) == (FailureKind.JUDGE, "judge_timeout")
    assert len(judge.asked) > 1
    assert held(world) == (0, 0)


async def test_not_available_to_the_letter_needs_no_judge(world: World, env: AskedFor) -> None:
    await env.reset(fake_task(evaluation=fuzzy("N/A", "It is sold out."), require_login=False))
    assert (await env.evaluate("N/A")).outcome == 1.0
