; Scopes and local names in Swift. syntax/bindings.py defines the capture names.

(source_file) @scope
[(class_body) (enum_class_body) (protocol_body)] @scope.class
[
  (function_declaration) (init_declaration) (deinit_declaration) (subscript_declaration) (protocol_function_declaration)
  (lambda_literal) (computed_property)
] @scope.function
[(class_declaration) (protocol_declaration) (for_statement) (switch_entry) (catch_block)] @scope

(parameter name: (simple_identifier) @definition.parameter)
(lambda_parameter name: (simple_identifier) @definition.parameter)
(_ bound_identifier: (simple_identifier) @definition.variable)
(pattern (simple_identifier) @definition.variable)
(type_parameter (type_identifier) @definition.type_parameter)
