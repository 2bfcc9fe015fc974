"""The embedded code host: projects with files, commits, issues, merge requests and members."""
