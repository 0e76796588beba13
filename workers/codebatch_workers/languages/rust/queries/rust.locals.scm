; Scopes and local names in Rust. syntax/bindings.py defines the capture names. A pattern with a capital letter is a
; constant or a variant, and binds nothing.

(source_file) @scope
[(function_item) (closure_expression) (function_signature_item)] @scope.function
[
  (block) (match_arm) (for_expression) (if_expression) (while_expression) (impl_item) (struct_item) (enum_item)
  (union_item) (trait_item) (type_item)
] @scope

(parameter pattern: (identifier) @definition.parameter)
(closure_parameters (identifier) @definition.parameter)
(let_declaration pattern: (identifier) @definition.variable)
(for_expression pattern: (identifier) @definition.variable)
((match_pattern (identifier) @definition.variable) (#match? @definition.variable "^[a-z_]"))
((let_condition pattern: (identifier) @definition.variable) (#match? @definition.variable "^[a-z_]"))
(captured_pattern . (identifier) @definition.variable)
(mut_pattern (identifier) @definition.variable)
(ref_pattern (identifier) @definition.variable)
((reference_pattern (identifier) @definition.variable) (#match? @definition.variable "^[a-z_]"))
((tuple_pattern (identifier) @definition.variable) (#match? @definition.variable "^[a-z_]"))
((tuple_struct_pattern type: (_) (identifier) @definition.variable) (#match? @definition.variable "^[a-z_]"))
((slice_pattern (identifier) @definition.variable) (#match? @definition.variable "^[a-z_]"))
((or_pattern (identifier) @definition.variable) (#match? @definition.variable "^[a-z_]"))
((field_pattern pattern: (identifier) @definition.variable) (#match? @definition.variable "^[a-z_]"))
(field_pattern name: (shorthand_field_identifier) @definition.variable)
(type_parameter name: (type_identifier) @definition.type_parameter)
(const_parameter name: (identifier) @definition.type_parameter)
