; Scopes, definitions and references of JavaScript and TypeScript. syntax/bindings.py defines the capture names.

[
  (program) (class_declaration) (class)
  (statement_block) (class_static_block) (switch_body) (catch_clause) (for_statement) (for_in_statement)
] @scope
[
  (function_declaration) (generator_function_declaration) (function_expression) (generator_function)
  (arrow_function) (method_definition)
] @scope.function

(import_clause (identifier) @definition.import)
(namespace_import (identifier) @definition.import)
(import_specifier !alias name: (identifier) @definition.import)
(import_specifier name: (_) @ignored alias: (identifier) @definition.import)

(lexical_declaration (variable_declarator name: (_) @definition.variable))
(variable_declaration (variable_declarator name: (_) @definition.var))
(for_in_statement kind: "var" left: (_) @definition.var)
(for_in_statement kind: ["let" "const"] left: (_) @definition.variable)
(function_declaration name: (identifier) @definition.function)
(generator_function_declaration name: (identifier) @definition.function)
(class_declaration name: (_) @definition.function)
(function_expression name: (identifier) @definition.own)
(generator_function name: (identifier) @definition.own)
(class name: (_) @definition.own)
(formal_parameters (_) @definition.parameter)
(arrow_function parameter: (identifier) @definition.parameter)
(catch_clause parameter: (_) @definition.parameter)

(export_statement declaration: (_) @exported)
(assignment_expression left: (identifier) @ignored)
[(identifier) (shorthand_property_identifier)] @reference
