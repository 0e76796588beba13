; Captures that only TypeScript has.

[
  (abstract_class_declaration) (interface_declaration) (type_alias_declaration)
] @scope
[
  (function_signature) (method_signature) (abstract_method_signature) (call_signature) (construct_signature)
  (function_type) (constructor_type)
] @scope.type

(import_alias (identifier) @definition.import)
(import_require_clause (identifier) @definition.import)
(type_parameter name: (type_identifier) @definition.type_parameter)
(abstract_class_declaration name: (_) @definition.function)
(interface_declaration name: (_) @definition.function)
(type_alias_declaration name: (_) @definition.function)
(function_signature name: (identifier) @definition.function)
(enum_declaration name: (_) @definition.variable)
(internal_module name: (identifier) @definition.variable)
(ambient_declaration) @ambient
; `using a = f()`, as the grammar parses it.
(assignment_expression "using" left: (identifier) @definition.variable)

(type_identifier) @reference
