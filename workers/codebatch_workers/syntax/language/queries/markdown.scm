; Markdown has no definitions, and text that is no comment of a language: nothing is read.
