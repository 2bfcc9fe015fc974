"""WebArena and WebArena-Lite: task files, addresses, logins, leases, resets and environments over real sites."""
