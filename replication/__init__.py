"""How replicas agree on a log of bytes. Pure: no I/O, clock, randomness of its own, threads. Start at README.md."""
