"""work: run a worker."""


def work() -> None:
    """Run a worker."""
