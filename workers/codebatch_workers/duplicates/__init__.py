"""Search for duplicate blocks: blocks of code that occur in several places."""
