"""The resources that a job used: from samples, records and the accounting of schedulers to a report."""
