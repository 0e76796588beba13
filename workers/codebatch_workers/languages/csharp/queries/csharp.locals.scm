; Scopes, local variables and type parameters in C#. syntax/bindings.py defines the capture names.

(compilation_unit) @scope
[
  (method_declaration) (constructor_declaration) (destructor_declaration) (operator_declaration)
  (conversion_operator_declaration) (local_function_statement) (lambda_expression) (anonymous_method_expression)
  (accessor_declaration) (property_declaration) (indexer_declaration)
] @scope.function
[
  (block) (for_statement) (foreach_statement) (using_statement) (fixed_statement) (catch_clause) (switch_section)
  (switch_expression_arm) (query_expression) (class_declaration) (struct_declaration) (record_declaration)
  (interface_declaration) (delegate_declaration)
] @scope

(parameter name: (identifier) @definition.parameter)
(implicit_parameter) @definition.parameter
(local_declaration_statement (variable_declaration (variable_declarator name: (identifier) @definition.variable)))
(using_statement (variable_declaration (variable_declarator name: (identifier) @definition.variable)))
(for_statement (variable_declaration (variable_declarator name: (identifier) @definition.variable)))
(fixed_statement (variable_declaration (variable_declarator name: (identifier) @definition.variable)))
(foreach_statement left: (identifier) @definition.variable)
(tuple_pattern name: (identifier) @definition.variable)
(declaration_expression name: (identifier) @definition.variable)
(declaration_pattern name: (identifier) @definition.variable)
(recursive_pattern name: (identifier) @definition.variable)
(var_pattern name: (identifier) @definition.variable)
(catch_declaration name: (identifier) @definition.variable)
(from_clause name: (identifier) @definition.variable)
(let_clause . (identifier) @definition.variable)
(join_clause . (identifier) @definition.variable)
(type_parameter name: (identifier) @definition.type_parameter)
(local_function_statement name: (identifier) @definition.function)
