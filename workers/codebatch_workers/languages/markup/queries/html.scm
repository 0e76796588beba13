; HTML has no definitions: only comments are captured.

(comment) @comment
