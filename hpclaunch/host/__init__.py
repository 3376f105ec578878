"""Where commands run and files live. A host knows nothing of schedulers."""
