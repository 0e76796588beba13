; Scopes and local variables in PHP. syntax/bindings.py defines the capture names.

(program) @scope
[(function_definition) (method_declaration) (anonymous_function) (arrow_function)] @scope.function

(simple_parameter name: (variable_name) @definition.parameter)
(variadic_parameter name: (variable_name) @definition.parameter)
(property_promotion_parameter name: (variable_name) @definition.parameter)
(assignment_expression left: (variable_name) @definition.var)
(reference_assignment_expression left: (variable_name) @definition.var)
(augmented_assignment_expression left: (variable_name) @definition.var)
(list_literal (variable_name) @definition.var)
(foreach_statement (variable_name) @definition.var)
(foreach_statement (pair (variable_name) @definition.var))
(by_ref (variable_name) @definition.var)
(catch_clause name: (variable_name) @definition.var)
(global_declaration (variable_name) @definition.var)
(static_variable_declaration name: (variable_name) @definition.var)
(anonymous_function_use_clause (variable_name) @definition.variable)
