"""What to do with a run that is already in the run folder.

Must import nothing beyond the standard library: the command line has it before any command runs.
"""

from __future__ import annotations

from enum import StrEnum


class Resume(StrEnum):
    """The values of ``--resume``."""

    AUTO = "auto"
    """Go on with it."""
    NEVER = "never"
    """Refuse it."""
    OTHER_CODE = "other-code"
    """Go on with it although Waymark or a package has changed since."""
