"""A store in an object store (S3, Google Cloud Storage, Azure), by ``obstore``.

Owns how the operations of ``Store`` become requests. Invariants: whatever must have one winner is a single conditional
request to the final key, never a copy or a rename; every request ends; credentials come from the environment alone and
are in no error's text. ``obstore`` is imported with the first store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from records.durable import open_file
from records.stores.store import Content, MissingKey, Record, RecordChanged, StoreError, checked_key

SCHEMES = ("s3", "gs", "az", "memory")
"""Schemes of addresses that name an object store; ``memory`` lives as long as its process."""
_REQUEST_S = 60.0
"""Fixed: one request, of a part of at most ``_PART`` bytes; it is tried again for ``_GIVE_UP_S``."""
_GIVE_UP_S = 120.0
"""Fixed: a store that fails for longer is down, and whoever waits is to be told."""
_PART = 64 << 20
"""Fixed: a larger object is put in parts, which no condition guards; its key must name its content."""
_CHUNK = 8 << 20
_memories: dict[str, Any] = {}


class ObjectStore:
    """A ``Store`` under the address ``uri``; no request is made before the first operation."""

    def __init__(self, uri: str) -> None:
        self._uri = uri.rstrip("/")
        self._store = _connected(self._uri)

    @property
    def uri(self) -> str:
        """The address, without credentials."""
        return self._uri

    def put(self, key: str, content: Content) -> bool:
        """See ``Store``; of two writers of an object above 64 MiB both win, so name its content."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        large = isinstance(content, Path) and content.stat().st_size > _PART
        if large and self.size(key) is not None:
            return False
        mode: Any = "overwrite" if large else "create"
        data = content
        if isinstance(content, Path):
            with open_file(content) as file:
                data = content if large else file.read()
        with self._translated(key):
            try:
                obstore.put(self._store, checked_key(key), data, mode=mode, use_multipart=large)
            except AlreadyExistsError:
                return False
        return True

    def read(self, key: str) -> bytes:
        """See ``Store``."""
        import obstore

        with self._translated(key):
            return bytes(obstore.get(self._store, checked_key(key)).bytes())

    def fetch(self, key: str, target: Path) -> None:
        """See ``Store``."""
        import obstore

        with self._translated(key), target.open("xb") as file:
            for chunk in obstore.get(self._store, checked_key(key)).stream(min_chunk_size=_CHUNK):
                file.write(chunk)

    def link(self, key: str, valid_s: float) -> str:
        """See ``Store``; a signed URL, which is made here without asking the store."""
        import obstore

        if self._uri.startswith("memory://"):
            raise StoreError(f"{self._uri} is in the memory of one process: name a store that others reach")
        with self._translated(key):
            return obstore.sign(self._store, "GET", checked_key(key), timedelta(seconds=valid_s))

    def size(self, key: str) -> int | None:
        """See ``Store``."""
        import obstore

        try:
            with self._translated(key):
                return int(obstore.head(self._store, checked_key(key))["size"])
        except MissingKey:
            return None

    def keys(self, prefix: str) -> list[str]:
        """See ``Store``."""
        import obstore

        with self._translated(prefix):
            pages = obstore.list(self._store, checked_key(prefix))
            return sorted(str(found["path"]) for page in pages for found in page)

    def delete(self, key: str) -> None:
        """See ``Store``."""
        import obstore

        try:
            with self._translated(key):
                obstore.delete(self._store, checked_key(key))
        except MissingKey:
            return

    def record(self, key: str) -> Record | None:
        """See ``Store``."""
        import obstore

        try:
            with self._translated(key):
                found = obstore.get(self._store, checked_key(key))
                return Record(bytes(found.bytes()), str(found.meta["e_tag"]))
        except MissingKey:
            return None

    def swap(self, key: str, content: bytes, version: str | None) -> str:
        """See ``Store``."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError

        mode: Any = "create" if version is None else {"e_tag": version}
        with self._translated(key):
            try:
                return str(obstore.put(self._store, checked_key(key), content, mode=mode)["e_tag"])
            except (AlreadyExistsError, NotFoundError, PreconditionError) as error:
                found = self.record(key)
                # A request is tried again when its answer was lost; what it wrote then stands in its own way.
                if found is not None and found.content == content:
                    return found.version
                raise RecordChanged(f"{key}: expected version {version}, found another") from error

    @contextmanager
    def _translated(self, key: str) -> Iterator[None]:
        """Turn what the client raises into the store's errors, without what the server said of the request."""
        from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError

        try:
            yield
        except (NotFoundError, FileNotFoundError) as error:
            raise MissingKey(f"{self._uri} has no {key}") from error
        except (PermissionDeniedError, UnauthenticatedError):
            advice = "look at the credentials in the environment"
            raise StoreError(f"{self._uri} does not allow this process to use {key}; {advice}") from None
        except BaseError as error:
            cause = str(error).partition("\n")[0][:300]
            raise StoreError(f"{self._uri} failed at {key} ({type(error).__name__}: {cause})") from None


def _connected(uri: str) -> Any:
    """Return the client of an address; raise ``StoreError`` where it can be none."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import MemoryStore, from_url
    except ImportError as error:
        raise StoreError(f"{uri} needs obstore, which is not installed: pip install obstore") from error
    if uri.startswith("memory://"):
        return _memories.setdefault(uri, MemoryStore())
    options: Any = {"timeout": timedelta(seconds=_REQUEST_S), "connect_timeout": timedelta(seconds=_REQUEST_S / 6)}
    # Its own options make the client forget this variable, by which a store on this machine is asked without TLS.
    options["allow_http"] = os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"
    try:
        return from_url(uri, client_options=options, retry_config={"retry_timeout": timedelta(seconds=_GIVE_UP_S)})
    except (BaseError, ValueError) as error:
        raise StoreError(f"{uri} names no store: {str(error)[:300]}") from None
