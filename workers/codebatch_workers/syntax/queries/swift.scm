; What the tasks read of Swift. Capture names: see ../outline.py.

(class_declaration declaration_kind: ["class" "actor" "extension"]) @def.class
(class_declaration declaration_kind: "struct") @def.struct
(class_declaration declaration_kind: "enum") @def.enum
(protocol_declaration) @def.interface
(enum_entry name: (simple_identifier) @name.enum_member)
(typealias_declaration) @leaf.type
(function_declaration) @def.function @function
(protocol_function_declaration) @leaf.method
[(init_declaration) (deinit_declaration) (subscript_declaration)] @function
(lambda_literal) @block
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name.variable))

(import_declaration) @import
(inheritance_specifier inherits_from: (_) @base)
(call_expression . (_) @call)

[
  (if_statement) (guard_statement) (ternary_expression)
  (for_statement) (while_statement) (repeat_while_statement)
  (catch_block)
] @decision
(switch_entry "case") @decision
["&&" "||"] @decision

[(comment) (multiline_comment)] @comment
