"""Every store passes the contract; what was acknowledged outlives its writer; addresses that are none are refused."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from records.stores.address import open_store
from records.stores.folder_store import FolderStore
from records.stores.lease import RunLease, read_head
from records.stores.store import Store, StoreError
from tests.records.stores.contract import StoreContract


class TestFolderStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FolderStore(tmp_path.parent / f"{tmp_path.name}-store")

    def test_without_hard_links_it_says_so(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*paths: object) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
        with pytest.raises(StoreError, match="no hard links"):
            store.put("a", b"x")
        assert store.keys("a") == []

    def test_a_link_that_was_made_and_answered_as_one_that_is_there_has_won(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """NFS sends a request again when its answer was lost, and finds what the first one did."""
        link = os.link

        def sent_twice(source: Path, target: Path) -> None:
            link(source, target)
            link(source, target)

        monkeypatch.setattr(os, "link", sent_twice)
        assert store.put("a", b"x")
        assert not store.put("a", b"x")
        version = store.swap("record", b"1", None)
        assert store.swap("record", b"2", version) != version

    @pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
    def test_a_driver_whose_disk_failed_once_after_the_link_goes_on(
        self, store: Store, number: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lease = RunLease(store)
        lease.take(alone=True)

        def failed(path: Path) -> None:
            raise OSError(number, os.strerror(number), str(path))

        with monkeypatch.context() as patched:
            patched.setattr("records.stores.folder_store.force_to_disk", failed)
            with pytest.raises(StoreError, match=os.strerror(number)):
                lease.commit()
        head = lease.commit()
        assert read_head(store) == head


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return open_store(f"memory://tests/{uuid4().hex}")


class TestS3Store(StoreContract):
    @pytest.fixture
    def store(self, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Store:
        for name, value in s3.items():
            monkeypatch.setenv(name, value)
        return open_store(f"s3://waymark-tests/{uuid4().hex}")

    def test_an_object_put_in_parts_is_there_whole(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("records.stores.object_store._PART", 1 << 20)
        content = os.urandom(12 << 20)
        (tmp_path / "large").write_bytes(content)
        assert store.put("large", tmp_path / "large")
        assert not store.put("large", tmp_path / "large")
        store.fetch("large", tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == content

    def test_a_bucket_that_is_not_there_is_an_error_without_credentials(self, s3: dict[str, str], store: Store) -> None:
        with pytest.raises(StoreError) as raised:
            open_store("s3://another-bucket/run").put("a", b"x")
        for secret in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            assert s3[secret] not in str(raised.value)


_WRITER = """
import os, signal, sys
from pathlib import Path
from records.stores.address import open_store
from records.stores.objects import put_object
store = open_store(sys.argv[1])
moment, put = sys.argv[2], store.put
def killed(key, content):
    if moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    put(key, content)
    os.kill(os.getpid(), signal.SIGKILL)
store.put = killed
put_object(store, "episodes/shard.arrow", b"episodes" * 1000)
print("acknowledged", flush=True)
"""


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_writer_killed_before_its_acknowledgement_leaves_all_or_nothing(
    kind: str, s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    address = str(tmp_path / "store") if kind == "folder" else f"s3://waymark-tests/{uuid4().hex}"
    for moment, expected in (("before", 0), ("after", 1), ("after", 1)):
        done = subprocess.run(
            [sys.executable, "-c", _WRITER, address, moment],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": "src"},
        )
        assert (done.returncode, done.stdout) == (-signal.SIGKILL, ""), done.stderr
        store = open_store(address)
        assert len(store.keys("episodes")) == expected
        assert all(store.read(key) == b"episodes" * 1000 for key in store.keys("episodes"))


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("ftp://host/run", "begins with s3://"),
        ("https://user:secret@host/run", "begins with s3://"),
        ("s3://key:secret@bucket/run", "no credentials"),
        ("s3://bucket/run?x=secret", "no credentials"),
        ("s3://bucket", "a folder of the run's own"),
        ("s3:///run", "a folder of the run's own"),
    ],
)
def test_what_names_no_store_is_refused_without_its_secrets(address: str, says: str) -> None:
    with pytest.raises(StoreError, match=says) as raised:
        open_store(address)
    assert "secret" not in str(raised.value)
