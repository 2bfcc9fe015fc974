"""Who may use which deployment of WebArena's sites, and when."""
