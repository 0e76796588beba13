; Captures that only TypeScript has.

(abstract_class_declaration) @def.class
(interface_declaration) @def.interface
(enum_declaration) @def.enum
(internal_module) @def.namespace
(module) @def.namespace
(type_alias_declaration) @leaf.type
(function_signature) @leaf.function
(interface_body (method_signature) @leaf.method)
(class_body (method_signature) @leaf.method)
(abstract_method_signature) @leaf.method
(interface_body (property_signature) @leaf.field)
(public_field_definition) @leaf.field
(required_parameter (accessibility_modifier) pattern: (identifier) @parameter.field)
(required_parameter "readonly" pattern: (identifier) @parameter.field)
(optional_parameter (accessibility_modifier) pattern: (identifier) @parameter.field)
(enum_body name: (property_identifier) @name.enum_member)
(enum_body name: (string (string_fragment) @name.enum_member))
(enum_assignment) @leaf.enum_member
(import_alias) @import
((module name: (string) @source) (#match? @source "^.[.]"))
(import_require_clause (identifier) @bound source: (_) @source)

; A class in an expression has no name of its own, unless a variable or an export gives one to it.
(class_declaration (class_heritage [(extends_clause value: (_) @base) (implements_clause (_) @base)]))
(abstract_class_declaration (class_heritage [(extends_clause value: (_) @base) (implements_clause (_) @base)]))
(variable_declarator (class (class_heritage [(extends_clause value: (_) @base) (implements_clause (_) @base)])))
(export_statement (class (class_heritage [(extends_clause value: (_) @base) (implements_clause (_) @base)])))
(class (class_heritage [(extends_clause value: (_) @base.anonymous) (implements_clause (_) @base.anonymous)]))
(extends_type_clause type: [(type_identifier) (nested_type_identifier)] @base)
; `Omit<A, "x">` has members of `A`.
((extends_type_clause type: (generic_type name: (_) @_name type_arguments: (type_arguments . (_) @base)))
  (#match? @_name "^(Omit|Partial|Pick|Readonly|Required)$"))
((extends_type_clause type: (generic_type name: (_) @_name) @base)
  (#not-match? @_name "^(Omit|Partial|Pick|Readonly|Required)$"))

(accessibility_modifier) @visibility

; `using a = f()`, as the grammar parses it.
(assignment_expression "using" left: (identifier) @name.constant)
