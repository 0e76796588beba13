"""Rules for the uses of names in languages that need rules of their own."""
