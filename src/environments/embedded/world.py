"""The embedded sites as a browser slot's episodes need them.

Owns ``EmbeddedWorld``. Invariant: an episode is played in a site session that no other slot knows and that is made
afresh for it; after a failure, a timeout or a cancellation the next one has a new token, so that no late request can
reach its session.
"""

from __future__ import annotations

import logging
import secrets

from environments.addresses import EpisodeAddresses, embedded_bypass
from environments.browser.interaction import Interaction
from environments.browser.page_view import BrowserPageView
from environments.embedded.sessions import SiteSessions
from environments.environment import Grant
from judges.interface import EndedEpisode, OpenVerdict, TrajectoryJudge
from judges.verdicts import Evaluators
from records.deadline import Deadline
from records.environment import Action, Observation, Verdict
from records.episodes import Task
from records.failures import EpisodeFailed

_DROP_S = 10.0
"""Fixed: a sites' server that does not answer by then is started afresh by its watch, without sessions."""

_LOG = logging.getLogger(__name__)


class EmbeddedWorld:
    """A ``World`` over ``sites``, judged by ``judge`` (the evaluators); ``token`` names the slot's session there."""

    keeps_context = True

    def __init__(self, sites: SiteSessions, judge: TrajectoryJudge | None = None) -> None:
        self.sites = sites
        self._judge: TrajectoryJudge = judge or Evaluators()
        self.token = ""

    async def open(self, task: Task, pages: Interaction, grant: Grant | None) -> Observation:
        """Give the task a fresh session and open its start pages."""
        slot, sites = pages.slot, self.sites
        if not await slot.take_over():
            await slot.discard()
            await self.close()
            self.token = f"e{secrets.token_hex(8)}"
            await slot.open_context(embedded_bypass(self.token, sites.port))
        slot.addresses = EpisodeAddresses.embedded(task.sites, self.token, sites.port)
        login = task.sites if task.require_login else ()
        await sites.open_session(self.token, task.sites, login, pages.deadline, task.data_seed)
        await pages.open_start_pages(task)
        return await pages.look(first=True)

    async def step(self, action: Action, pages: Interaction) -> Observation:
        """Let the agent act."""
        return await pages.act(action)

    async def judge(self, task: Task, answer: str | None, pages: Interaction) -> Verdict | OpenVerdict:
        """Ask the judge, who has a page of their own in the same context."""
        slot = pages.slot
        # What the agent saw after its session was lost was not the task; such an episode is not judged.
        await self.sites.require_session(self.token, pages.deadline)

        async def fresh_page() -> BrowserPageView:
            # These sites' pages draw nothing once they are quiet: what is absent then is absent.
            return BrowserPageView(await slot.judging_tab(), slot.addresses, pages.deadline, patience_s=0.0)

        last = BrowserPageView(slot.tab, slot.addresses, pages.deadline)
        verdict = await self._judge.verdict(EndedEpisode(task, answer, last, fresh_page, deadline=pages.deadline))
        await slot.quieten_judging_tab()
        return verdict

    async def close(self, *, judged: bool = False) -> None:
        """Drop the session."""
        token, self.token = self.token, ""
        if not token:
            return
        try:
            await self.sites.drop_session(token, Deadline(_DROP_S))
        except EpisodeFailed as error:
            _LOG.debug("session %s was not dropped: %s", token, error)
