"""Errors a run reports to its user, and the exit codes of the command line.

Owns the one table of exit codes; the CLI turns a ``RunError`` into its code and its message, so
nothing below the CLI ever exits a process.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of ``waymark``; documented in ``docs/reference/cli.md``."""

    OK = 0
    """Done."""
    FAILED = 1
    """Something unforeseen; the traceback says where."""
    USAGE = 2
    """The command line, the recipe or an override is wrong; nothing was started."""
    MISSING = 3
    """This machine lacks something the recipe needs; nothing was started."""
    STOPPED = 4
    """The run stopped itself, or another driver has it; the same command goes on later."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C or SIGTERM; it can be resumed."""


class RunError(Exception):
    """An expected end with a message for the user: what was expected, what was found, what to do."""

    code = ExitCode.FAILED


class RecipeError(RunError):
    """The recipe or an override does not say something valid."""

    code = ExitCode.USAGE


class MissingError(RunError):
    """Something the recipe needs is not on this machine."""

    code = ExitCode.MISSING


class ManifestError(RunError):
    """The run folder does not fit what was asked of it."""

    code = ExitCode.USAGE


class RunInUse(RunError):
    """Another process has the run, and may live; the same command goes on once that one has ended."""

    code = ExitCode.STOPPED


class RunStopped(RunError):
    """The run stopped itself in an orderly way and can be resumed."""

    code = ExitCode.STOPPED


class ProcessLost(RunStopped):
    """A process that cannot be replaced while the others run has ended or does not answer; a fresh start may help."""


class RunInterrupted(RunError):
    """The user stopped the run; everything complete is on disk."""

    code = ExitCode.INTERRUPTED
