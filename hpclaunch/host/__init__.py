"""Hosts: machines where commands run and files live. A host knows nothing about schedulers."""
