"""Batches, their holders and journals, and the store that contains them."""
