"""Scaling studies: the jobs of several sizes, one after another, and what they measured."""
