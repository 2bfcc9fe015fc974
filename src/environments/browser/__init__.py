"""Pages in a real Chromium: its process, its tabs, the in-page script and real input."""
