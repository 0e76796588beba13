; Captures of Lua. symbols/outline.py defines the capture names.

(function_declaration) @def.function @function
(function_definition) @function
(assignment_statement (expression_list value: (function_definition) @def.assigned))
(field name: (_) value: (function_definition) @def.assigned)
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name.variable))))
(chunk (assignment_statement (variable_list name: (identifier) @name.variable)))

((function_call name: (identifier) @_name) @import (#any-of? @_name "require" "pcall" "xpcall"))
(function_call name: (_) @call)

[(if_statement) (for_statement) (while_statement) (repeat_statement)] @branch
(elseif_statement) @elif
(else_statement) @else
["and" "or"] @logical
(goto_statement) @jump

(comment) @comment
