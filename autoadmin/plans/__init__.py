"""What is to be done next, each kind of work in a file of its own. All of it is pure."""
