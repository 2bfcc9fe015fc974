"""Benchmarks: one script a question; each prints a table and writes its raw numbers as JSON."""
