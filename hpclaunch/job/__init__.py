"""The life of a job: prepared, submitted, followed, restarted and recorded."""
