"""The embedded sites: server-rendered pages, seeded data, tasks and scripted experts."""
