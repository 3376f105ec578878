"""Timelines of training jobs: where a step's time goes, which rank the rest wait for, and remedies."""
