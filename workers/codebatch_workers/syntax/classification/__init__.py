"""Whether a file is a test, generated, vendored or a migration."""
