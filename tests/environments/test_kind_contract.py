"""Every kind of environment keeps the contract of a kind, and its environments keep theirs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from environments.browser.settings import BrowserSettings
from environments.contract import ContractBroken
from environments.embedded.kind import BROWSERLESS
from environments.kind_contract import check_kind
from environments.kinds import KINDS
from sites.settings import SitesSettings
from tests.environments.lab_site import serving
from tests.environments.webarena.fake_sites import FakeSite

HERE = __name__
QUICK = BrowserSettings(wait_action_s=0.01)
BROWSER = pytest.mark.browser


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "browserless" else BROWSER) for name in sorted(KINDS.own)]
)
async def test_every_kind_of_waymarks_own_keeps_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(FakeSite("Shop").app()) as port:
        monkeypatch.setenv("SHOPPING", f"http://127.0.0.1:{port}/page/1")
        await check_kind(name, browser=QUICK)


@BROWSER
async def test_the_example_of_the_guide_keeps_it() -> None:
    await check_kind("examples.guestbook:GUESTBOOK", {"signers": ["Gus"]}, QUICK)


@dataclass
class Loose:
    """Settings that may change, take any key, and lack a default."""

    size: int
    seed: int = 0


LOOSE = replace(
    BROWSERLESS,
    settings=Loose,
    section="",
    first_look={"size": 1},
    tasks=lambda settings: BROWSERLESS.tasks(SitesSettings()),
)


async def test_all_that_a_kind_does_not_keep_is_listed() -> None:
    with pytest.raises(ContractBroken) as broken:
        await check_kind(f"{HERE}:LOOSE", browser=QUICK)
    for line in ("Loose to be frozen", "to forbid extra keys", "a default for size"):
        assert line in str(broken.value)
