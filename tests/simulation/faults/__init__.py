"""What breaks, how often and for how long."""
