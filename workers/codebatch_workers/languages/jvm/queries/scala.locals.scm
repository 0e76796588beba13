; Scopes and local names in Scala. syntax/bindings.py defines the capture names.

(compilation_unit) @scope
(template_body) @scope.class
[(function_definition) (function_declaration) (lambda_expression)] @scope.function
[(class_definition) (trait_definition) (object_definition) (block) (case_clause) (for_expression)] @scope

(parameter name: (identifier) @definition.parameter)
(class_parameter name: (identifier) @definition.parameter)
(binding name: (identifier) @definition.parameter)
(lambda_expression parameters: (identifier) @definition.parameter)
(val_definition pattern: (identifier) @definition.variable)
(var_definition pattern: (identifier) @definition.variable)
(typed_pattern pattern: (identifier) @definition.variable)
(type_parameters name: (identifier) @definition.type_parameter)
