"""Trireme for Python: so far the report of a run."""
