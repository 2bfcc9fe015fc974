"""The embedded sites without a browser: HTML read by lxml, in the worker's own process."""
