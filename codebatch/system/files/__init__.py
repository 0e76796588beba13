"""Files: the interface that store code writes through, and its implementation."""
