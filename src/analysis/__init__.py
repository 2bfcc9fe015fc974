"""Metrics, intervals, comparisons and the report page."""
