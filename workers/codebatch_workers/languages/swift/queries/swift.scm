; Captures of Swift. symbols/outline.py defines the capture names.

(class_declaration declaration_kind: ["class" "actor"]) @def.class
(class_declaration declaration_kind: "extension") @impl
(class_declaration declaration_kind: "struct") @def.struct
(class_declaration declaration_kind: "enum") @def.enum
(protocol_declaration) @def.interface
(enum_entry name: (simple_identifier) @name.enum_member)
[(typealias_declaration) (associatedtype_declaration)] @leaf.type
(macro_declaration (simple_identifier) @name.macro)
(function_declaration) @def.function @function
(protocol_function_declaration) @leaf.method
(init_declaration) @def.constructor @function
[(deinit_declaration) (subscript_declaration)] @def.method @function
(property_declaration (computed_property [(computed_getter) (computed_setter)] @function @accessor))
(property_declaration (computed_property (statements)) @function @accessor)
[(willset_clause) (didset_clause)] @function @accessor
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name.field))
(lambda_literal) @block
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name.variable))
(property_declaration name: (pattern (pattern bound_identifier: (simple_identifier) @name.variable)))

(import_declaration) @import
(inheritance_specifier inherits_from: (_) @base)
(call_expression . (_) @call)
(constructor_expression constructed_type: (_) @call)
(macro_invocation . (simple_identifier) @call)
(user_type) @use
(navigation_expression target: (simple_identifier) @use)
(type_parameter (type_identifier) @local)
(visibility_modifier) @visibility

(function_declaration (parameter) @parameter)
(init_declaration (parameter) @parameter)
(subscript_declaration (parameter) @parameter)

[
  (if_statement) (guard_statement) (ternary_expression)
  (for_statement) (while_statement) (repeat_while_statement)
  (catch_block)
] @branch
(if_statement (else) @else)
(if_statement (else) . (if_statement) @elseif)
(switch_statement) @switch
(switch_entry "case") @decision
(switch_entry (where_keyword) @decision)
[(where_clause) "??"] @decision
["&&" "||"] @logical
(control_transfer_statement ["break" "continue"] result: (_)) @jump

[(comment) (multiline_comment)] @comment
