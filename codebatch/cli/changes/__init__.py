"""Commands for changes that tasks propose: `changes` shows them, `apply` writes them."""
