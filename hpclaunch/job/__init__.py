"""A job: what was asked, what was planned, the script, and the record of what became of it."""
