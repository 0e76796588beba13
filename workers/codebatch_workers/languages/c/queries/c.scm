; Captures of C, and of syntax that C++ shares with it. symbols/outline.py defines the capture names;
; languages/c/captures.py derives further captures from @function, @typedef and @storage.

(function_definition) @def.function @function
(struct_specifier name: (_) body: (_)) @def.struct
(union_specifier name: (_) body: (_)) @def.union
(enum_specifier name: (_) body: (_)) @def.enum
(type_definition) @typedef
(type_definition declarator: (_) @leaf.type)
(enumerator) @leaf.enum_member
(field_declaration declarator: (_) @leaf.field)
(declaration declarator: (_) @leaf.variable)
(storage_class_specifier) @storage

(preproc_include) @import
((preproc_call directive: (preproc_directive) @_directive) @import (#match? @_directive "^#\\s*import$"))
(call_expression function: (_) @call)
(initializer_list (identifier) @use)
(initializer_pair value: (identifier) @use)
(argument_list (identifier) @use)
(pointer_expression argument: (identifier) @use)

[(if_statement) (conditional_expression) (for_statement) (while_statement) (do_statement)] @branch
(else_clause) @else
(else_clause (if_statement) @elseif)
(switch_statement) @switch
(case_statement value: (_)) @decision
(binary_expression operator: ["&&" "||"] @logical)
(goto_statement) @jump
[(preproc_if condition: (_) @aside) (preproc_elif condition: (_) @aside)]

(comment) @comment
