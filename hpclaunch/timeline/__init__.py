"""Timelines of training jobs: where a step's time goes, which rank the other ranks wait for, and what to
change."""
