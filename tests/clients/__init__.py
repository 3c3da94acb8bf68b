"""Programs of real clients, each in an environment of its own, see environments.py."""
