"""Checks: what a job needs, held against what is there, each finding with its remedy."""
