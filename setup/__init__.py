"""Set-up for `make`: runs on the bare system Python, before anything is installed."""
