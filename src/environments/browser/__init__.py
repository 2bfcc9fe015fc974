"""Pages in a real Chromium: the session, its tabs, the in-page script and real input."""
