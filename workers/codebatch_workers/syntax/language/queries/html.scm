; HTML has no definitions: its comments are all that is read.

(comment) @comment
