"""The forum: a small discussion site with threads, comments, votes, subscriptions and messages."""
