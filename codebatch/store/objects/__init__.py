"""Objects, and the packs that contain them."""
