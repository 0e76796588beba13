"""Search for code patterns and tree-sitter queries."""
