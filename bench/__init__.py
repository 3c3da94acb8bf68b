"""A small load harness for users: `make bench`."""
