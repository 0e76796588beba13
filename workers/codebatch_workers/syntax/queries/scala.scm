; What the tasks read of Scala. Capture names: see ../outline.py.

(package_clause name: (_) @name.module)
(class_definition) @def.class
(object_definition) @def.class
(trait_definition) @def.trait
(enum_definition) @def.enum
(simple_enum_case name: (_) @name.enum_member)
(full_enum_case name: (_) @name.enum_member)
(type_definition) @leaf.type
(function_definition) @def.function @function
(function_declaration) @leaf.function
(lambda_expression) @block
(val_definition pattern: (identifier) @name.variable)
(var_definition pattern: (identifier) @name.variable)

(import_declaration) @import
(extends_clause type: (_) @base)
(call_expression function: (_) @call)
(instance_expression . (_) @call)

[(if_expression) (for_expression) (while_expression) (do_while_expression) (case_clause)] @decision
((operator_identifier) @decision (#any-of? @decision "&&" "||"))

[(comment) (block_comment)] @comment
