"""Placeholders that stand for sites' base addresses: ``http://shop.test:7770/cart`` is written ``__SHOP__/cart``.

Owns how an address becomes canonical. Invariants: a base may have a path; under several bases at once, an address
belongs to the longest; what only begins like a base (another port, a longer name) is not under it. Pure; whoever
keeps base addresses (without a closing slash) passes them in.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit


def placeholder(site: str) -> str:
    """Return what stands for the base address of ``site``."""
    return f"__{site.upper()}__"


def canonical(bases: Mapping[str, str], url: str) -> str:
    """Replace the base under which ``url`` lies by its placeholder; other addresses stay as they are."""
    site = site_under(bases, url)
    return url if site is None else placeholder(site) + (url[len(bases[site]) :] or "/")


def site_under(bases: Mapping[str, str], url: str) -> str | None:
    """Return the site under whose base ``url`` lies (of equally long bases the first), None for a foreign address."""
    hits = [site for site, base in bases.items() if url.startswith(base) and url[len(base) :][:1] in ("", *"/?#")]
    return max(hits, key=lambda site: len(bases[site]), default=None)


def origin(url: str) -> str:
    """Return scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
