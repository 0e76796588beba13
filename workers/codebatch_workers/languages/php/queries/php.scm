; Captures of PHP. symbols/outline.py defines the capture names.

(namespace_definition name: (_) @name.namespace)
(class_declaration) @def.class
(interface_declaration) @def.interface
(trait_declaration) @def.trait
(enum_declaration) @def.enum
(enum_case) @leaf.enum_member
(function_definition) @def.function @function
(method_declaration) @def.method @function
(property_hook body: (_)) @function @accessor
[(anonymous_function) (arrow_function)] @block
(program (expression_statement (assignment_expression
  left: (variable_name (name)) right: [(anonymous_function) (arrow_function)] @def.assigned @function)))
(property_element name: (variable_name (name) @name.field))
(property_promotion_parameter name: (variable_name (name) @parameter.field))
(const_element . (name) @name.constant)

(namespace_use_declaration) @import
[(require_expression) (require_once_expression) (include_expression) (include_once_expression)] @import
(class_declaration [(base_clause (_) @base) (class_interface_clause (_) @base)])
(interface_declaration (base_clause (_) @base))
(enum_declaration (class_interface_clause (_) @base))
(anonymous_class [(base_clause (_) @base.anonymous @use) (class_interface_clause (_) @base.anonymous @use)])
(function_call_expression function: [(name) (qualified_name) (relative_name) (parenthesized_expression)] @call)
(member_call_expression name: (name) @tail)
(nullsafe_member_call_expression name: (name) @tail)
(scoped_call_expression name: (name) @tail)
(object_creation_expression . [(name) (qualified_name)] @call @use)
(object_creation_expression . (relative_name) @call @use)
(named_type (_) @use)
(scoped_call_expression scope: [(name) (qualified_name) (relative_name)] @use)
(scoped_property_access_expression scope: [(name) (qualified_name) (relative_name)] @use)
(class_constant_access_expression . [(name) (qualified_name) (relative_name)] @use)
(binary_expression operator: "instanceof" right: [(name) (qualified_name) (relative_name)] @use)
(attribute [(name) (qualified_name) (relative_name)] @use)
(use_declaration [(name) (qualified_name) (relative_name)] @use @base)

[
  (if_statement) (conditional_expression)
  (for_statement) (foreach_statement) (while_statement) (do_statement)
  (catch_clause)
] @branch
(else_if_clause) @elif
(else_clause) @else
(else_clause body: (if_statement) @elseif)
[(switch_statement) (match_expression)] @switch
[(case_statement) (match_conditional_expression)] @decision
["??" "??="] @decision
["&&" "||" "and" "or"] @logical
[(goto_statement) (break_statement (integer)) (continue_statement (integer))] @jump

(comment) @comment
