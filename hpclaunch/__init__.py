"""hpclaunch: distributed deep-learning jobs, bound, configured, verified and measured with one command."""

__version__ = "0.1.0"
