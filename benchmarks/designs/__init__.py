"""The table designs that this queue grew from, and the queue itself: one SQL file each, in its worst case."""
