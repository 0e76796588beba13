; Captures of Kotlin. symbols/outline.py defines the capture names.

(package_header (qualified_identifier) @name.module)
(class_declaration "class") @def.class
(class_declaration "interface") @def.interface
(object_declaration) @def.class
; After an annotation without parentheses, the grammar parses `annotation class A` and `data object B` as expressions.
((annotated_expression (infix_expression . (identifier) . (identifier) @_word . [
  (identifier) @name.class
  (call_expression . (identifier) @name.class)
])) (#any-of? @_word "class" "object"))
((annotated_expression (infix_expression . (identifier) . (identifier) @_word . [
  (identifier) @name.interface
  (call_expression . (identifier) @name.interface)
])) (#eq? @_word "interface"))
(enum_entry (identifier) @name.enum_member)
(type_alias type: (identifier) @name.type)
(function_declaration) @def.function @function
(secondary_constructor) @function @accessor
(anonymous_initializer) @function @accessor
(getter (function_body)) @function @accessor
(setter (function_body)) @function @accessor
(lambda_literal) @block
(property_declaration (variable_declaration (identifier) @name.variable))
(class_parameter ["val" "var"] (identifier) @name.field)
(companion_object (identifier) @name.class)

(import) @import
(class_declaration (delegation_specifiers (delegation_specifier [(user_type) @base (constructor_invocation) @base (explicit_delegation . (_) @base)])))
(object_declaration (delegation_specifiers (delegation_specifier [(user_type) @base (constructor_invocation) @base (explicit_delegation . (_) @base)])))
(companion_object (delegation_specifiers (delegation_specifier (_) @base)))
(object_literal (delegation_specifiers (delegation_specifier (_) @base.anonymous)))
(call_expression . (_) @call)
(infix_expression . (_) . (identifier) @tail)
(user_type) @use
(navigation_expression . (identifier) @use)
[
  (value_argument (identifier) @use)
  (property_declaration (identifier) @use)
  (function_body (identifier) @use)
  (binary_expression (identifier) @use)
  (when_entry condition: (identifier) @use)
  (callable_reference (identifier) @use)
]
(type_parameter (identifier) @local)
(parameter (identifier) @local)
(class_parameter (identifier) @local)
(variable_declaration (identifier) @local)

(function_declaration (function_value_parameters (parameter) @parameter))
(secondary_constructor (function_value_parameters (parameter) @parameter))

[(if_expression) (for_statement) (while_statement) (do_while_statement) (catch_block)] @branch
(if_expression "else" @else)
(if_expression "else" . (if_expression) @elseif)
(when_expression) @switch
(when_entry) @decision
(when_entry "," @guard)
"?:" @decision
["&&" "||"] @logical
((labeled_expression (label) @_label) @jump (#any-of? @_label "break@" "continue@"))

[(line_comment) (block_comment)] @comment

[
  (class_declaration (modifiers (visibility_modifier) @visibility))
  (object_declaration (modifiers (visibility_modifier) @visibility))
  (function_declaration (modifiers (visibility_modifier) @visibility))
  (property_declaration (modifiers (visibility_modifier) @visibility))
  (type_alias (modifiers (visibility_modifier) @visibility))
]
