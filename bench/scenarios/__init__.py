"""What is measured. Each module answers one question with rows; `catalogue` lists them."""
