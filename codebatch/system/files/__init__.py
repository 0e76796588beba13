"""Files of a store: the interface with which other packages read and write them, and its implementation."""
