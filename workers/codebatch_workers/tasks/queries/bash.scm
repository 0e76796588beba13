; What the tasks read of shell scripts. Capture names: see ../outline.py.

(function_definition) @def.function @function
(variable_assignment name: (variable_name) @name.variable)
(command) @command

[
  (if_statement) (elif_clause) (for_statement) (c_style_for_statement) (while_statement) (case_item)
] @decision
(list ["&&" "||"] @decision)

(comment) @comment
