"""Answers that need more than a table."""
