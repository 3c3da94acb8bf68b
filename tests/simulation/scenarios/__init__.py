"""Whole runs: a cluster, a workload, faults, and what is checked at the end."""
