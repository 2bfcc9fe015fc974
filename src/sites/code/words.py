"""The code host's vocabulary: names, titles and texts that its data and tasks are made of.

Owns nothing but words. They are few on purpose, and resemble each other on purpose (Ana, Anna, Dana;
an ``api`` in four groups): telling them apart is what the tasks are about.
"""

from __future__ import annotations

GROUPS = {
    "web": ("api", "parser", "shop", "theme"),
    "data": ("api", "parser", "loader", "reports"),
    "infra": ("api", "deploy", "loader", "tools"),
    "mobile": ("app", "login", "shop", "theme"),
    "games": ("app", "cards", "engine", "guide"),
    "docs": ("guide", "reports", "theme", "tools"),
}
"""Groups and their projects."""

MINE = ("api", "app", "notes", "tools")
"""Projects in the user's own namespace."""

USERS = (
    "ana", "anna", "annika", "bela", "ben", "carl", "carla", "dan", "dana", "emil", "emilia", "femi",
    "gita", "hugo", "iva", "ivan", "jona", "jonas", "karim", "lena", "leni", "nora", "noor", "omar",
)  # fmt: skip

VERBS = ("Add", "Check", "Fix", "Improve", "Remove", "Rename", "Test")
OBJECTS = (
    "login form", "search box", "user table", "error page", "date field", "mail queue", "log file", "cache key",
    "upload button", "export job", "menu bar", "color list",
)  # fmt: skip
"""A title is a verb and an object."""

LABELS = {
    "bug": "Something is broken",
    "feature": "Something new",
    "docs": "About the text",
    "question": "Somebody asks",
    "urgent": "Do it soon",
    "design": "How it looks",
}
NEW_LABELS = ("backend", "blocked", "duplicate", "frontend", "help wanted", "later", "security", "speed")
MILESTONES = ("v1.0", "v1.1", "v2.0")
MILESTONE_NOTES = ("Bugs only", "First public test", "For all users", "New design", "Small changes", "What we promised")
NEW_MILESTONES = ("v2.1", "v3.0", "Beta", "Spring release", "Summer release", "Winter release")
BRANCHES = ("develop", "next", "stable")

ABOUT = ("A small {name} for {group} people.", "The {name} that {group} uses.", "Our {name}, made for {group}.")
ISSUE_TEXTS = (
    "It happens every time.", "I saw it on the first page.", "Please have a look.", "This would help new users.",
    "It was fine last week.", "See the log for more.",
)  # fmt: skip
COMMENTS = (
    "I can take this one.", "Same here since Monday.", "It works on my side.", "Please add a test.",
    "This looks good to me.", "Let us talk about it.", "Can we do it later?", "I will look at it today.",
)  # fmt: skip
NEW_COMMENTS = (
    "Done on my branch", "I will do it tomorrow", "Please check this again", "Thanks for the report",
    "We need a test here", "This blocks the release", "Who can review this", "Ready for a review",
)  # fmt: skip
COMPANIES = ("Acorn", "Birch", "Cedar", "Maple")
PLACES = ("Berlin", "Cairo", "Lima", "Oslo", "Porto", "Quito")
STATUSES = (
    "Away until Monday", "Busy with the release", "In a meeting", "On a train", "On holiday", "Out for lunch",
    "Reviewing", "Testing", "Working from home", "Writing docs",
)  # fmt: skip
CLEAR_AFTER = ("30 minutes", "3 hours", "8 hours", "1 day")
LICENSES = {
    "MIT": "MIT License. Use it as you like and keep this notice.",
    "Apache": "Apache License. Use it as you like and state your changes.",
    "GPL": "GPL License. Share what you change.",
}
"""What a LICENSE file says, by the license's short name."""

NEW_PROJECTS = ("atlas", "bridge", "compass", "harbor", "lantern", "meadow", "orbit", "pebble", "quartz", "raven")
NEW_FILES = ("CHANGES.md", "TODO.md", "build.yml", "main.py", "setup.cfg", "test.sh")
FILE_TEXTS = ("version 1", "nothing yet", "see the guide", "run all tests", "name and date", "first draft")
NEW_BRANCHES = ("clean-up", "faster-start", "fix-login", "new-menu", "small-fixes", "try-cache")
