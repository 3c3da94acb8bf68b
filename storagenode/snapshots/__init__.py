"""Snapshots: durable copies of a partition's store, which trim the log and bring back replicas. Start at keeper.py."""
