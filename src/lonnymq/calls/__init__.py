"""Each operation of the queue as a value: its SQL, its parameters, its decoder. No I/O."""
