"""The language of a file, its encoding and its grammar."""
