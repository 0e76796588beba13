"""What a user of codebatch can have done: use cases, called by the command line, by `import codebatch` and by views."""
