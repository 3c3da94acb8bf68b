"""Fuzzing: arbitrary bytes against what reads bytes of strangers. `make fuzz SECONDS=600`."""
