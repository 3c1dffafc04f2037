"""What others watch: metrics, traces and health of a queue and its workers."""
