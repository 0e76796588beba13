"""What a store, a batch and this program are held against."""
