"""Probes of machines: gathered, freed of names, compared with a profile, and written into one."""
