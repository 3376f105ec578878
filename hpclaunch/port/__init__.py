"""From a batch script for one machine to a job file for another one, and a report on each line. Pure."""
