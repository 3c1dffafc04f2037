"""Table designs for queues, and LonnyMQ itself: one SQL file each, in its worst case."""
