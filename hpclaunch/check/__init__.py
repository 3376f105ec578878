"""Checks: what a job needs, compared with what is there; each problem with its remedy."""
