"""Runs: from a plan to a job that is submitted exactly once, followed politely, and whose outcome is kept."""
