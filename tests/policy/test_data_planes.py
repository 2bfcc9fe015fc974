"""By broadcast weights reach every server that lives; one that is gone or stands still costs the others nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from policy.backend import BACKENDS, backend_of
from policy.client import ServerUnreachable
from policy.data_planes import Answer, Broadcast
from policy.published_weights import PublishedWeights, TransferBroken, WeightsRejected
from policy.settings import PolicySettings

WEIGHTS = PublishedWeights(3, "c" * 64, "/weights/3")


@dataclass
class Sender:
    """A sender whose broadcast is over when as many receivers as it invited have come, and breaks off otherwise."""

    invited: list[tuple[str, ...]] = field(default_factory=list)
    came: set[str] = field(default_factory=set)
    fault: Exception | None = None

    async def invite(self, weights: PublishedWeights, devices: Sequence[str], limit_s: float) -> Sequence[str]:
        if self.fault is not None:
            raise self.fault
        self.invited.append(tuple(devices))
        self.came = set()
        return [f"broadcast {len(self.invited)} place {place}" for place in range(1, 1 + len(devices))]

    async def all_came(self, limit_s: float) -> None:
        try:
            async with asyncio.timeout(limit_s):
                while len(self.came) < len(self.invited[-1]):
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise TransferBroken("somebody did not come") from None

    async def send(self, weights: PublishedWeights, limit_s: float) -> None:
        await self.all_came(0.8 * limit_s)


@dataclass
class Server:
    """A server that comes to broadcasts, unless told otherwise."""

    name: str
    sender: Sender
    kinds: tuple[str, ...] = ("cpu",)
    gone: bool = False
    stands_still: bool = False
    refuses: bool = False
    places: list[str] = field(default_factory=list)

    async def devices(self) -> Sequence[str]:
        if self.gone:
            raise ServerUnreachable(f"{self.name} is dead")
        return self.kinds

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        self.places.append(weights.path)
        if self.stands_still:
            self.gone = True
            await asyncio.sleep(60)
        self.sender.came |= {f"{self.name} {worker}" for worker, _ in enumerate(self.kinds)}
        await self.sender.all_came(0.3)
        if self.refuses:
            raise WeightsRejected("expected checksum")
        return replace(weights, path="")


async def broadcast(sender: Sender, *servers: Server) -> dict[str, Answer]:
    answers = await Broadcast(sender)(servers, WEIGHTS, 2.0)
    return {server.name: answer for server, answer in zip(servers, answers, strict=True)}


async def test_all_servers_are_sent_to_at_once_each_worker_at_a_place_of_its_own() -> None:
    sender = Sender()
    one, two = Server("one", sender, kinds=("cuda", "cuda")), Server("two", sender)
    answers = await broadcast(sender, one, two)
    assert all(answer == replace(WEIGHTS, path="") for answer in answers.values())
    assert sender.invited == [("cuda", "cuda", "cpu")]
    assert (one.places, two.places) == (["broadcast 1 place 1"], ["broadcast 1 place 3"])


async def test_a_server_that_is_gone_is_not_invited() -> None:
    sender = Sender()
    answers = await broadcast(sender, Server("one", sender), Server("two", sender, gone=True))
    assert isinstance(answers["one"], PublishedWeights)
    assert "two is dead" in str(answers["two"])
    assert sender.invited == [("cpu",)]


async def test_a_broadcast_that_one_server_broke_off_is_begun_again_without_it() -> None:
    sender = Sender()
    one, two = Server("one", sender), Server("two", sender, stands_still=True)
    answers = await broadcast(sender, one, two)
    assert isinstance(answers["one"], PublishedWeights)
    assert "no answer" in str(answers["two"])
    assert sender.invited == [("cpu", "cpu"), ("cpu",)]
    assert one.places == ["broadcast 1 place 1", "broadcast 2 place 1"]


async def test_what_one_server_refuses_the_other_takes() -> None:
    sender = Sender()
    answers = await broadcast(sender, Server("one", sender), Server("two", sender, refuses=True))
    assert isinstance(answers["one"], PublishedWeights)
    assert "expected checksum" in str(answers["two"])
    assert len(sender.invited) == 1


async def test_without_a_sender_every_server_is_said_to_have_nothing() -> None:
    sender = Sender(fault=ServerUnreachable("the learner is dead"))
    answers = await broadcast(sender, Server("one", sender), Server("two", sender))
    assert ["the learner is dead" in str(answer) for answer in answers.values()] == [True, True]


async def test_two_broadcasts_do_not_cross() -> None:
    sender = Sender()
    plane, one, two = Broadcast(sender), Server("one", sender), Server("two", sender)
    answers = await asyncio.gather(plane([one], WEIGHTS, 2.0), plane([two], WEIGHTS, 2.0))
    assert all(isinstance(answer, PublishedWeights) for (answer,) in answers)
    assert (one.places, two.places) == (["broadcast 1 place 1"], ["broadcast 2 place 1"])


def test_a_backend_that_takes_no_broadcast_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_backend, _ = backend_of(PolicySettings(publication="broadcast"))
    assert "broadcast" in torch_backend.planes
    by_file_alone = replace(torch_backend, planes=("file",))
    monkeypatch.setattr(type(BACKENDS), "find", lambda self, name: by_file_alone)
    with pytest.raises(ValueError, match=r"policy.publication: expected file.*found 'broadcast'"):
        backend_of(PolicySettings(publication="broadcast"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"publication": "pigeon"}, "publication"),
        ({"publication": "broadcast", "weights_store": "/shared"}, "weights_store must be empty"),
        ({"weights_store": "ftp://bucket/weights"}, "weights_store"),
        ({"weights_store": "s3://key:secret@bucket/weights"}, "credentials"),
        ({"weights_store": "s3://bucket"}, "a folder of the run's own"),
    ],
)
def test_ways_of_publishing_that_make_no_sense_are_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        PolicySettings(**given)
    assert "secret" not in str(refused.value)
