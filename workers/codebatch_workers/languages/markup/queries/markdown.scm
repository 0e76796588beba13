; Markdown has no definitions and no comments: nothing is captured.
