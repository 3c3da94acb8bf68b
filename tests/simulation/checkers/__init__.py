"""What must hold, whatever broke: pure functions over histories, and over the replicas' rows."""
