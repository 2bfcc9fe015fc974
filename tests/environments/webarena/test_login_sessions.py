"""Accounts that stay hidden, and sessions that are lent to one episode at a time."""

import asyncio
import copy
import json
import pickle
from pathlib import Path

import pytest

from environments.webarena.login.accounts import Account, Accounts, CredentialsMissing, Secret
from environments.webarena.login.form_login import StoredLogin
from environments.webarena.login.sessions import LoginSessions
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure, FailureKind

WORD = 'pa ss"&w0rd+/?'


class Site:
    """Counts log-ins and how many run at once; ``error`` makes them fail, ``takes_s`` last."""

    def __init__(self) -> None:
        self.now, self.made, self.running, self.most = 1000.0, 0, 0, 0
        self.takes_s, self.expires_at = 0.0, None
        self.expires_at: float | None = None
        self.error: EpisodeFailed | None = None

    async def log_in(self, deployment: str, site: str) -> StoredLogin:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(self.takes_s)
        self.running -= 1
        if self.error is not None:
            raise self.error
        self.made += 1
        return StoredLogin({"cookies": [{"name": "id", "value": str(self.made)}]}, self.expires_at)

    def logins(self, timeout_s: float = 5.0) -> LoginSessions:
        return LoginSessions(
            self.log_in, lifetime_s=lambda site: 600.0, margin_s=100.0, timeout_s=timeout_s, clock=lambda: self.now
        )


async def test_a_session_is_lent_to_one_episode_and_then_to_the_next() -> None:
    site = Site()
    logins = site.logins()
    one, two = await logins.lend("blue", "shop", "0"), await logins.lend("blue", "shop", "0")
    assert one.state != two.state
    logins.give_back(one, usable=True)
    assert await logins.lend("blue", "shop", "0") is one
    assert (site.made, logins.logins) == (2, 2)


async def test_sessions_of_different_sites_and_deployments_are_apart() -> None:
    logins = Site().logins()
    one = await logins.lend("blue", "shop", "0")
    logins.give_back(one, usable=True)
    assert await logins.lend("green", "shop", "0") is not one
    assert await logins.lend("blue", "forum", "0") is not one


async def test_a_session_that_may_expire_during_an_episode_is_not_lent() -> None:
    site = Site()
    logins = site.logins()
    logins.give_back(await logins.lend("blue", "shop", "0"), usable=True)
    site.now += 499
    kept = await logins.lend("blue", "shop", "0")
    assert site.made == 1
    logins.give_back(kept, usable=True)
    site.now += 2
    assert await logins.lend("blue", "shop", "0") is not kept
    assert site.made == 2


async def test_a_cookie_that_ends_sooner_ends_the_session_sooner() -> None:
    site = Site()
    site.expires_at = site.now + 150
    logins = site.logins()
    logins.give_back(await logins.lend("blue", "shop", "0"), usable=True)
    site.now += 60
    await logins.lend("blue", "shop", "0")
    assert site.made == 2


async def test_an_unusable_session_and_all_of_before_a_reset_are_forgotten() -> None:
    site = Site()
    logins = site.logins()
    logins.give_back(await logins.lend("blue", "shop", "0"), usable=False)
    lent, kept = await logins.lend("blue", "shop", "0"), await logins.lend("blue", "shop", "0")
    other = await logins.lend("green", "shop", "0")
    logins.give_back(kept, usable=True)
    logins.give_back(other, usable=True)
    after = await logins.lend("blue", "shop", "1")
    assert after not in (lent, kept)
    logins.give_back(lent, usable=True)
    logins.give_back(after, usable=True)
    assert await logins.lend("blue", "shop", "1") is after
    assert await logins.lend("blue", "shop", "1") not in (lent, kept)
    assert await logins.lend("green", "shop", "0") is other


async def test_one_log_in_runs_at_a_time_for_an_account() -> None:
    site = Site()
    site.takes_s = 0.01
    logins = site.logins()
    sessions = await asyncio.gather(*(logins.lend("blue", "shop", "0") for _ in range(5)))
    assert len(set(map(id, sessions))) == 5
    assert site.most == 1


async def test_a_session_that_does_not_come_in_time_is_a_failed_log_in_and_blocks_nobody() -> None:
    site = Site()
    site.takes_s = 30.0
    logins = site.logins(timeout_s=0.5)
    for _ in range(2):
        with pytest.raises(EpisodeFailed) as caught:
            await logins.lend("blue", "shop", "0")
        assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.INFRA, "login_failed")
    site.takes_s = 0.0
    await logins.lend("blue", "shop", "0")


async def test_a_failed_log_in_is_raised_and_the_next_try_may_succeed() -> None:
    site = Site()
    logins = site.logins()
    site.error = EpisodeFailed(Failure(codes.LOGIN_FAILED, "no"))
    with pytest.raises(EpisodeFailed, match="login_failed"):
        await logins.lend("blue", "shop", "0")
    site.error = None
    assert (await logins.lend("blue", "shop", "0")).key == ("blue", "shop")


def test_a_secret_shows_itself_to_nobody_who_does_not_ask() -> None:
    account = Account(Secret("agent"), Secret(WORD))
    for text in (repr(account), str(account), f"{account.password}", repr([account.password])):
        assert WORD not in text
        assert "agent" not in text
    for copying in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="stays in the process"):
            copying(account)


def test_what_is_said_about_a_log_in_loses_the_password_however_it_is_written() -> None:
    account = Account(Secret("agent"), Secret(WORD))
    said = f"{WORD} pa%20ss%22%26w0rd%2B%2F%3F pa+ss%22%26w0rd%2B%2F%3F {json.dumps(WORD)} by agent"
    assert account.redact(said) == '[hidden] [hidden] [hidden] "[hidden]" by [hidden]'


def test_accounts_come_from_a_file_and_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "accounts.json"
    path.write_text(json.dumps({"reddit": {"username": "reader", "password": "from the file"}}))
    environ = {"REDDIT_USERNAME": "x", "REDDIT_PASSWORD": "x", "SHOPPING_USERNAME": "buyer", "SHOPPING_PASSWORD": WORD}
    accounts = Accounts.load(str(path), environ)
    assert accounts.of("reddit").password.reveal() == "from the file"
    assert accounts.of("shopping").username.reveal() == "buyer"
    with pytest.raises(CredentialsMissing, match="set GITLAB_USERNAME and GITLAB_PASSWORD"):
        accounts.of("gitlab")


@pytest.mark.parametrize("text", ['{"shopping": {"username": "u", "password": "hunter2"', '{"shopping": "hunter2"}'])
def test_an_unreadable_accounts_file_is_told_without_its_contents(tmp_path: Path, text: str) -> None:
    path = tmp_path / "accounts.json"
    path.write_text(text)
    with pytest.raises(CredentialsMissing) as caught:
        Accounts.load(str(path), {})
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(CredentialsMissing, match="No such file"):
        Accounts.load(str(tmp_path / "missing.json"), {})
