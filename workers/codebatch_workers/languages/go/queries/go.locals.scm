; Scopes and local names in Go. syntax/bindings.py defines the capture names.

(source_file) @scope
[(function_declaration) (method_declaration) (func_literal)] @scope.function
[
  (block) (if_statement) (for_statement) (expression_switch_statement) (type_switch_statement) (select_statement)
  (expression_case) (default_case) (type_case) (communication_case) (type_spec) (type_alias) (method_elem)
  (function_type)
] @scope

(parameter_declaration name: (identifier) @definition.parameter)
(variadic_parameter_declaration name: (identifier) @definition.parameter)
(type_parameter_declaration name: (identifier) @definition.type_parameter)
(short_var_declaration left: (expression_list (identifier) @definition.variable))
(range_clause left: (expression_list (identifier) @definition.variable) ":=")
(receive_statement left: (expression_list (identifier) @definition.variable) ":=")
(type_switch_statement alias: (expression_list (identifier) @definition.variable))
(var_spec name: (identifier) @definition.variable)
(const_spec name: (identifier) @definition.variable)
