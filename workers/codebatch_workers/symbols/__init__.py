"""What a file defines, how it is built, and what its parts relate to."""
