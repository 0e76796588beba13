; Captures of shell scripts. symbols/outline.py defines the capture names.

(function_definition) @def.function @function
(variable_assignment name: (variable_name) @name.variable)
(variable_assignment name: (subscript name: (variable_name) @name.variable))
; The shell expands a word with one of these characters before it looks for the command.
((command name: (_) @command) (#not-match? @command "\\A(?:\\.|source)\\Z|[$`\"'\\\\ \n]"))
((command name: (_) @_name . argument: (_) @source.word) (#any-of? @_name "source" "."))

[(if_statement) (for_statement) (c_style_for_statement) (while_statement)] @branch
(elif_clause) @elif
(else_clause) @else
(case_statement) @switch
(case_item) @decision
(list ["&&" "||"] @logical)
(binary_expression operator: ["&&" "||"] @logical)

(comment) @comment
