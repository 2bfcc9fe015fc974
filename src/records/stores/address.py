"""Addresses of stores: a folder, or the URI of an object store.

Owns which of the two a text is, and what it may not hold. Invariant: an address holds no
credentials. Imports no client.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from records.stores.folder_store import FolderStore
from records.stores.object_store import SCHEMES, ObjectStore
from records.stores.store import Store, StoreError


def is_uri(address: str) -> bool:
    """Return whether an address is written as a URI, so that it is no folder."""
    return "://" in address


def check_uri(uri: str) -> None:
    """Raise ``StoreError`` where a URI names no object store below a bucket, or holds what belongs elsewhere."""
    parts = urlsplit(uri)
    if parts.scheme not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise StoreError(f"{uri.split('@')[-1]:.200}: expected a folder, or an address that begins with {known}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        place = f"{parts.scheme}://…{parts.path}"
        raise StoreError(f"{place}: an address holds no credentials, no '?' and no '#'; set them in the environment")
    if not parts.netloc or not parts.path.strip("/"):
        raise StoreError(f"{uri}: expected SCHEME://BUCKET/FOLDER, with a folder of the run's own")


def open_store(address: str) -> Store:
    """Return the store at an address; raise ``StoreError`` where it names none."""
    if not is_uri(address):
        return FolderStore(Path(address))
    check_uri(address)
    return ObjectStore(address)
