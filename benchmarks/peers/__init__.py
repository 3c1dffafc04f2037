"""This queue beside what a reader would use instead, on the same machine, in the same run."""
