"""Schedulers as pure functions between data and text. Nothing here runs a command."""
