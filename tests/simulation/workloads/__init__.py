"""What clients do while things break. Shared by simulation and chaos: a history is a history, whoever made it."""
