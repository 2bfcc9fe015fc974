"""Servers that others started are asked by their names, at each address, the same way by the check and by the run."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from policy.client import Sampling, ServerUnreachable
from policy.settings import PolicySettings
from policy.vllm import places as looking
from policy.vllm.api import TokenRefused, VllmApi
from policy.vllm.backend import VllmSettings, preflight
from policy.vllm.places import Place, places
from records.checks import Check, Status
from tests.policy.test_vllm_api import GREEDY, reply
from tests.policy.test_vllm_found import SEVEN, Stub, found, label, published
from tests.policy.told_server import told

NAME = "vllm.test"
HEALTHY: dict[str, Any] = {"health": (200, {}), "weight_info": (200, {"weight_version": "default"})}


class Authority:
    """An authority of this test alone, and what it has signed, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of a test")])
        own = self._begun(self._name, self._key).add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _begun(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        begins = datetime.now(UTC) - timedelta(days=1)
        named = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key.public_key())
        return named.serial_number(x509.random_serial_number()).not_valid_before(begins).not_valid_after(
            begins + timedelta(days=3)
        )  # fmt: skip

    def server(self, heard: list[str | None], name: str = NAME) -> ssl.SSLContext:
        """What a server of this name shows; ``heard`` is whom its clients look for."""
        key = ec.generate_private_key(ec.SECP256R1())
        shown = self._begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key).add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name)]), False
        )
        pem, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        file = self._folder / f"{name}.pem"
        file.write_bytes(
            key.private_bytes(pem, kind, serialization.NoEncryption())
            + shown.sign(self._key, hashes.SHA256()).public_bytes(pem)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.sni_callback = lambda _, looked_for, __: heard.append(looked_for)
        return context


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives ``NAME`` the addresses that it is called with; other names keep theirs."""
    real, known = socket.getaddrinfo, list[str]()

    def resolve(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        if host not in (NAME, NAME.encode()):
            return real(host, port, *more, **named)
        six = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", (a, int(port), 0, 0)) for a in known if ":" in a]
        return six + [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, int(port))) for a in known if ":" not in a]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return lambda *addresses: known.extend(addresses)


def check(url: str, policy_dir: Path, **options: Any) -> list[Check]:
    """What a check before a run says of the servers of ``url``."""
    settings = VllmSettings(urls=(url,), **options)
    found = preflight(PolicySettings(backend="vllm", model=str(policy_dir), options=settings), settings)
    return [one for one in found if one.name == "policy.options.urls"]


async def test_replicas_behind_one_https_name_are_asked_by_address_under_their_name_by_check_and_run(
    authority: Authority, resolver: Callable[..., None], tmp_path: Path, policy_dir: Path
) -> None:
    resolver("127.0.0.1", "127.0.0.2")
    looked_for: list[str | None] = []
    tls, stubs = authority.server(looked_for), [Stub(), Stub()]
    async with (
        told(tls=tls, **stubs[0].answers()) as one,
        told(tls=tls, at="127.0.0.2", port=one.port, **stubs[1].answers()) as other,
    ):
        url = f"https://{NAME}:{one.port}"
        checks = await asyncio.to_thread(check, url, policy_dir)
        assert [made.status for made in checks] == [Status.OK, Status.OK], checks
        asked = [len(server.heard) for server in (one, other)]
        async with found(url, tmp_path, policy_dir) as running:
            assert await published(running, SEVEN, tmp_path / "current.json") == {}
            names = [server.name for server in running.weight_servers()]
    assert names == [f"{url} at 127.0.0.1", f"{url} at 127.0.0.2"]
    assert [stub.label for stub in stubs] == [label(SEVEN)] * 2
    assert asked == [2, 2], "the check asks each server that the run asks"
    assert set(one.hosts + other.hosts) == {f"{NAME}:{one.port}".encode()}
    assert set(looked_for) == {NAME}


async def test_a_gateway_that_routes_by_host_hears_the_name_without_tls_too(
    resolver: Callable[..., None], policy_dir: Path
) -> None:
    resolver("127.0.0.1")
    async with told(generate=(200, reply()), **HEALTHY) as server:
        url = f"http://{NAME}:{server.port}"
        (made,) = await asyncio.to_thread(check, url, policy_dir)
        assert made.status is Status.OK
        (place,) = await asyncio.to_thread(places, [url])
        async with asyncio.timeout(30), VllmApi(place, "") as api:
            assert (await api.complete([1], GREEDY, stop_ids=(), seeds=False)).action_ids == (5, 6)
    assert set(server.hosts) == {f"{NAME}:{server.port}".encode()}


async def test_a_certificate_that_is_not_accepted_is_refused_before_the_run(
    authority: Authority, resolver: Callable[..., None], policy_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver("127.0.0.1")
    async with told(tls=authority.server([], "another.test"), **HEALTHY) as server:
        url = f"https://{NAME}:{server.port}"
        (wrong_name,) = await asyncio.to_thread(check, url, policy_dir)
        (place,) = await asyncio.to_thread(places, [url])
        async with asyncio.timeout(30), VllmApi(place, "") as api:
            with pytest.raises(ServerUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
                await api.served()
        monkeypatch.setenv("SSL_CERT_FILE", str(policy_dir / "nowhere.pem"))
        (nowhere,) = await asyncio.to_thread(check, url, policy_dir)
        with pytest.raises(ServerUnreachable, match="SSL_CERT_FILE cannot be read"):
            VllmApi(place, "")
    assert (wrong_name.status, nowhere.status) == (Status.FAIL, Status.FAIL)
    assert "certificate that is not accepted" in wrong_name.found
    assert "SSL_CERT_FILE" in wrong_name.advice
    assert "SSL_CERT_FILE cannot be read" in nowhere.found


async def test_a_server_with_an_address_of_each_family_is_one_server(
    resolver: Callable[..., None], tmp_path: Path, policy_dir: Path
) -> None:
    resolver("::1", "127.0.0.1")
    async with told(**Stub().answers()) as server:
        url = f"http://{NAME}:{server.port}"
        (made,) = await asyncio.to_thread(check, url, policy_dir)
        assert made.status is Status.OK
        async with found(url, tmp_path, policy_dir) as running:
            assert [one.name for one in running.weight_servers()] == [f"{url} at 127.0.0.1"]
            assert await published(running, SEVEN, tmp_path / "current.json") == {}


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({"10.0.0.1", "fd00::1"}, ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]),
        ({"10.0.0.2"}, ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]),
        ({"fd00::1"}, ["http://[fd00::1]:8000"]),
        (set(), ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]),
    ],
)
def test_a_name_is_as_many_servers_as_it_has_addresses_of_the_family_that_answers(
    there: set[str], expected: list[str], resolver: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver("10.0.0.1", "fd00::1", "10.0.0.2", "10.0.0.1")
    monkeypatch.setattr(looking, "_takes_connections", lambda addresses, _: bool(there & set(addresses)))
    assert [place.reached_at for place in places([f"http://{NAME}:8000/"])] == expected


def test_a_connection_says_which_family_answers() -> None:
    with socket.socket() as taking:
        taking.bind(("127.0.0.1", 0))
        port = taking.getsockname()[1]
        assert not looking._takes_connections(["127.0.0.1"], port), "it does not listen yet"
        taking.listen()
        assert looking._takes_connections(["127.0.0.2", "127.0.0.1"], port)


def test_a_name_without_an_address_is_refused_with_the_setting_that_holds_it(policy_dir: Path) -> None:
    with pytest.raises(ValueError, match=r"policy.options.urls: http://nowhere.invalid:1 names no host"):
        places(["http://nowhere.invalid:1"])
    (made,) = check("http://nowhere.invalid:1", policy_dir)
    assert made.status is Status.WARN
    assert "names no host" in made.found


def test_an_address_stays_as_it_is_and_what_is_named_twice_is_one_server() -> None:
    urls = ["http://127.0.0.1:8000/", "http://127.0.0.1:8000", "https://[::1]/under/a/path"]
    assert places(urls) == [Place("http://127.0.0.1:8000"), Place("https://[::1]/under/a/path")]
    under = Place(f"https://{NAME}/a/path", "fd00::1")
    assert under.reached_at == "https://[fd00::1]/a/path"
    assert under.of("/pause") == f"https://{NAME}/a/path/pause at fd00::1"


async def test_a_server_under_two_names_is_told_before_the_run(resolver: Callable[..., None], policy_dir: Path) -> None:
    resolver("127.0.0.1")
    async with told(**HEALTHY) as server:
        urls = (f"http://{NAME}:{server.port}", server.url)
        settings = VllmSettings(urls=urls)
        policy = PolicySettings(backend="vllm", model=str(policy_dir), options=settings)
        checks = await asyncio.to_thread(preflight, policy, settings)
    (told_twice,) = [made for made in checks if made.status is not Status.OK]
    assert told_twice.status is Status.WARN
    assert "are at one address and port" in told_twice.found


async def test_a_token_is_in_no_message(policy_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "a-secret-of-this-test"
    async with told(generate=(401, f"not {secret}".encode()), **HEALTHY) as server:
        async with asyncio.timeout(30), VllmApi(server.url, secret) as api:
            with pytest.raises(TokenRefused, match="refuses this token: status 401, not …") as refused:
                await api.complete([1], Sampling(), stop_ids=(), seeds=False)
        assert secret not in str(refused.value)
        monkeypatch.setenv("A_TOKEN", f"{secret} and\nmore")
        (made,) = await asyncio.to_thread(check, server.url, policy_dir, token_variable="A_TOKEN")
        assert (made.status, made.found.partition(":")[0]) == (Status.FAIL, "A_TOKEN")
        assert secret not in f"{made.found} {made.advice}"
        monkeypatch.setenv("A_TOKEN", f"{secret}\n")
        (made,) = await asyncio.to_thread(check, server.url, policy_dir, token_variable="A_TOKEN")
        assert made.status is Status.OK, "the end of the line in a secret's file is not the token's"
    assert server.headers[-1] == f"Bearer {secret}".lower().encode()


@pytest.mark.parametrize(
    "wrong",
    ["vllm:8000", "http://", "http:///path", "http://host:99999", "http://me:pass@host:1", "http://host/?a=pass"],
)
def test_what_is_no_servers_address_is_refused_without_its_password(wrong: str) -> None:
    with pytest.raises(ValueError, match="urls must be addresses") as refused:
        VllmSettings(urls=(wrong,))
    assert "pass" not in str(refused.value).removesuffix("'http:///path'")
