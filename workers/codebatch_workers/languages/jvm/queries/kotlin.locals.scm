; Scopes and local names in Kotlin. syntax/bindings.py defines the capture names.

(source_file) @scope
[(class_body) (enum_class_body)] @scope.class
[(function_declaration) (secondary_constructor) (anonymous_function) (lambda_literal) (getter) (setter)] @scope.function
[(class_declaration) (object_declaration) (block) (for_statement) (when_entry) (catch_block)] @scope

(parameter . (identifier) @definition.parameter)
(class_parameter (identifier) @definition.parameter)
(variable_declaration . (identifier) @definition.variable)
(catch_block . (identifier) @definition.variable)
(type_parameter (identifier) @definition.type_parameter)
