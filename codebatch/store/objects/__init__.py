"""Objects, and the packs that hold them."""
