; Scopes and local names of Python. syntax/bindings.py defines the capture names.

(module) @scope
(class_definition body: (block) @scope.class)
[(function_definition) (lambda)] @scope.function
[(list_comprehension) (dictionary_comprehension) (set_comprehension) (generator_expression)] @scope
(class_definition type_parameters: (_)) @scope
(type_alias_statement (type (generic_type))) @scope

; Code in the range of a scope that is evaluated before the scope exists.
(function_definition !type_parameters parameters: (parameters [
  (typed_parameter type: (_) @scope.outer)
  (default_parameter value: (_) @scope.outer)
  (typed_default_parameter type: (_) @scope.outer)
  (typed_default_parameter value: (_) @scope.outer)
]))
(function_definition !type_parameters return_type: (_) @scope.outer)
(lambda_parameters (default_parameter value: (_) @scope.outer))
(list_comprehension body: (_) . (for_in_clause right: (_) @scope.outer))
(dictionary_comprehension body: (_) . (for_in_clause right: (_) @scope.outer))
(set_comprehension body: (_) . (for_in_clause right: (_) @scope.outer))
(generator_expression body: (_) . (for_in_clause right: (_) @scope.outer))

(function_definition name: (identifier) @definition.function)
(class_definition !type_parameters name: (identifier) @definition.class)
(class_definition name: (identifier) @definition.function type_parameters: (_))
(_ type_parameters: (type_parameter (type [
  (identifier) @definition.type_parameter
  (constrained_type . (type . (identifier) @definition.type_parameter))
  (splat_type (identifier) @definition.type_parameter)
])))
(type_alias_statement left: (type (generic_type (type_parameter (type . (identifier) @definition.type_parameter)))))
(type_alias_statement left: (type . (identifier) @definition.class))
(type_alias_statement left: (type (generic_type . (identifier) @definition.function)))

(parameters [
  (identifier) @definition.parameter
  (typed_parameter . (identifier) @definition.parameter)
  (typed_parameter [(list_splat_pattern (identifier) @definition.parameter) (dictionary_splat_pattern (identifier) @definition.parameter)])
  (default_parameter name: (identifier) @definition.parameter)
  (typed_default_parameter name: (identifier) @definition.parameter)
  (list_splat_pattern (identifier) @definition.parameter)
  (dictionary_splat_pattern (identifier) @definition.parameter)
])
(lambda_parameters [
  (identifier) @definition.parameter
  (default_parameter name: (identifier) @definition.parameter)
  (list_splat_pattern (identifier) @definition.parameter)
  (dictionary_splat_pattern (identifier) @definition.parameter)
])

(assignment left: (identifier) @definition.variable)
(augmented_assignment left: (identifier) @definition.variable)
(pattern_list (identifier) @definition.variable)
(tuple_pattern (identifier) @definition.variable)
(list_pattern (identifier) @definition.variable)
(assignment left: (list_splat_pattern (identifier) @definition.variable))
(pattern_list (list_splat_pattern (identifier) @definition.variable))
(tuple_pattern (list_splat_pattern (identifier) @definition.variable))
(list_pattern (list_splat_pattern (identifier) @definition.variable))
(for_statement left: (identifier) @definition.variable)
(for_in_clause left: (identifier) @definition.variable)
(as_pattern_target [
  (identifier) @definition.variable
  (tuple (identifier) @definition.variable)
  (list (identifier) @definition.variable)
  (parenthesized_expression (identifier) @definition.variable)
])
(named_expression name: (identifier) @definition.var)
(delete_statement [
  (identifier) @definition.variable
  (expression_list (identifier) @definition.variable)
])
(case_pattern (dotted_name . (identifier) @definition.variable .))
(keyword_pattern (dotted_name . (identifier) @definition.variable .))
(case_pattern (as_pattern (identifier) @definition.variable))
(splat_pattern (identifier) @definition.variable)
(union_pattern (dotted_name . (identifier) @definition.variable .))

(import_statement name: (dotted_name . (identifier) @definition.import))
(import_statement name: (aliased_import alias: (identifier) @definition.import))
(import_from_statement name: (dotted_name (identifier) @definition.import))
(import_from_statement name: (aliased_import alias: (identifier) @definition.import))

(global_statement (identifier) @global)
(nonlocal_statement (identifier) @nonlocal)
