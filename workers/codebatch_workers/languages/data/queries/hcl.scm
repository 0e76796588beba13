; Captures of HCL: attributes at the top level. Blocks have labels, not names.

(config_file (body (attribute (identifier) @name.variable)))

(comment) @comment
