; What the tasks read of HCL: its attributes at the top level; blocks have labels, not names.

(config_file (body (attribute (identifier) @name.variable)))

(comment) @comment
