"""What was found in forms that other programs read: a file of its own for each."""
