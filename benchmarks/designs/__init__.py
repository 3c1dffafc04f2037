"""The table designs that this queue grew from, and the queue itself: one SQL file each, every one in its worst case."""
