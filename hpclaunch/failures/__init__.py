"""Why a job failed: the words of its ranks, of its launcher and its scheduler, read and judged."""
