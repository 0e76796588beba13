"""Classification of files as tests, generated, vendored or migrations."""
