"""An episode whose sites fail is tried again within its budget; none of its attempts is a reward of 0."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import pytest_asyncio

from environments.admission import AskedFor, Asking
from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.webarena.kind import WEBARENA
from environments.webarena.settings import DeploymentSettings, WebArenaSettings
from environments.webarena.sites.deployments import deployments_of
from environments.webarena.sites.episode_addresses import resolver_rules
from environments.webarena.sites.shared import make_sites
from environments.webarena.world import WebArenaWorld
from judges.verdicts import Evaluators
from records.episodes import Source, Trajectory
from records.failures import FailureKind
from rollout_workers.agent import Decision, Turn
from rollout_workers.budget import FailureBudget, FailureBudgetExceeded
from rollout_workers.episode import play
from rollout_workers.leases import EpisodeLedger, EpisodeState
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from tests.environments.lab_site import serving
from tests.environments.webarena.fake_sites import ACCOUNTS, FORMS, FakeSite, fake_task

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

BROWSER = BrowserSettings(wait_action_s=0.01)
ACTIONS = ('do(action="Click", element="{One}")', 'do(action="Click", element="{Back}")', 'exit(message="done")')


@dataclass
class Walker:
    """Opens a page, comes back and ends; ``trouble`` is called before its second action."""

    trouble: Callable[[], None]
    turns: list[int] = field(default_factory=list)

    async def decide(self, turn: Turn) -> Decision:
        self.turns.append(turn.index)
        if turn.index == 1:
            self.trouble()
        ids = {element.name: element.element_id for element in turn.observation.elements}
        text = ACTIONS[turn.index].format_map(ids)
        none, zero = np.zeros(1, np.int32), np.zeros(1, np.float32)
        return Decision(none, none, zero, text, 0, 1.0, 0)


@pytest_asyncio.fixture(loop_scope="module")
async def made() -> AsyncIterator[tuple[FakeSite, AskedFor]]:
    site = FakeSite("Shop")
    with serving(site.app()) as port:
        addresses = {"shopping": f"http://127.0.0.1:{port}"}
        settings = WebArenaSettings(deployments=(DeploymentSettings("blue", addresses),), login_margin_s=1)
        deployments = deployments_of(settings)
        browser = BrowserProcess(BROWSER, resolver_rules(deployments.values()))
        sites = make_sites(settings, deployments, browser, ACCOUNTS, judge=Evaluators(), forms=FORMS)
        with WEBARENA.service(settings) as service:
            assert service.admission is not None
            env = AskedFor(BrowserEnvironment(browser, WebArenaWorld(sites)), Asking(service.admission))
            yield site, env
            site.fault = ""
            await env.close()
        await browser.close()


async def attempts(
    env: AskedFor, troubles: list[Callable[[], None]], budget: FailureBudget
) -> tuple[list[Trajectory], EpisodeState]:
    """Play one episode as the pool does: again after a failure, until the ledger says that it is final."""
    spec = EpisodeSpec("e1", fake_task(), Source.ROLLOUT, 0, 0)
    ledger, played = EpisodeLedger(["e1"], max_attempts=3), []
    while leases := ledger.lease(0, 1):
        trouble = troubles[len(played)] if len(played) < len(troubles) else lambda: None
        played.append((await play(env, Walker(trouble), spec, RolloutSettings())).trajectory)
        failure = played[-1].failure
        if failure is None:
            ledger.complete(leases[0])
        else:
            budget.record(failure)
            ledger.fail(leases[0], failure)
        budget.check()
    return played, ledger.state("e1")


async def test_a_session_that_ends_and_a_server_error_cost_an_attempt_each_and_then_the_episode_is_played(
    made: tuple[FakeSite, AskedFor],
) -> None:
    site, env = made
    budget = FailureBudget({FailureKind.INFRA: 2})

    def breaks() -> None:
        site.fault = "error"

    first, state = await attempts(env, [site.expire], budget)
    assert [t.failure and t.failure.code.name for t in first] == ["session_expired", None]
    assert [t.outcome for t in first] == [None, 1.0]
    assert state is EpisodeState.COMPLETED
    assert [len(t.steps) for t in first] == [1, 3]

    second, state = await attempts(env, [breaks], FailureBudget({FailureKind.INFRA: 9}))
    assert [t.outcome for t in second] == [None] * 3, "the site stays broken"
    assert [t.failure.code.name for t in second if t.failure] == ["site_error", "login_failed", "login_failed"]
    assert state is EpisodeState.FAILED
    assert budget.counts() == {"infra/session_expired": 1}


async def test_past_the_budget_the_run_stops_and_says_so(made: tuple[FakeSite, AskedFor]) -> None:
    site, env = made
    site.fault = "error"
    with pytest.raises(FailureBudgetExceeded, match="stopped after 2 infra failures.*login_failed x2"):
        await attempts(env, [], FailureBudget({FailureKind.INFRA: 1}))
