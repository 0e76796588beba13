"""Files: the interface through which store code reads and writes, and its implementation."""
