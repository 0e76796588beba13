"""Changes that tasks propose: listing them, printing them as a patch, and writing them to the files of a tree."""
