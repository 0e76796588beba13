"""Resolution of imports to files of a snapshot, by the rules of each language and by configuration files."""
