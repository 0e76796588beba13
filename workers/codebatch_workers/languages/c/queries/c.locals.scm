; Scopes and local names in C. syntax/bindings.py defines the capture names.

(translation_unit) @scope
(function_definition) @scope.function
[(compound_statement) (for_statement)] @scope

(parameter_declaration declarator: (identifier) @definition.parameter)
(parameter_declaration declarator: (function_declarator declarator: (identifier) @definition.parameter))
(declaration declarator: (identifier) @definition.variable)
(init_declarator declarator: (identifier) @definition.variable)
(pointer_declarator declarator: (identifier) @definition.variable)
(array_declarator declarator: (identifier) @definition.variable)
