; Scopes, local names and uses in Java. syntax/bindings.py defines the capture names.

(program) @scope
[
  (method_declaration) (constructor_declaration) (compact_constructor_declaration) (lambda_expression)
  (static_initializer)
] @scope.function
[
  (block) (constructor_body) (for_statement) (enhanced_for_statement) (catch_clause) (try_with_resources_statement)
  (switch_block) (class_declaration) (interface_declaration) (record_declaration)
] @scope

(formal_parameter name: (identifier) @definition.parameter)
(spread_parameter (variable_declarator name: (identifier) @definition.parameter))
(inferred_parameters (identifier) @definition.parameter)
(lambda_expression parameters: (identifier) @definition.parameter)
(catch_formal_parameter name: (identifier) @definition.parameter)
(local_variable_declaration declarator: (variable_declarator name: (identifier) @definition.variable))
(enhanced_for_statement name: (identifier) @definition.variable)
(resource name: (identifier) @definition.variable)
(type_pattern (identifier) @definition.variable)
(record_pattern_component (identifier) @definition.variable)
(instanceof_expression name: (identifier) @definition.variable)
(type_parameter (type_identifier) @definition.type_parameter)

(type_identifier) @use
(scoped_type_identifier . (type_identifier)) @use
(marker_annotation name: (_) @use)
(annotation name: (_) @use)
(field_access object: (identifier) @use)
(method_reference . (identifier) @use)
