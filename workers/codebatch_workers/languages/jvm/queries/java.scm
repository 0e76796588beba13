; Captures of Java. symbols/outline.py defines the capture names.

(package_declaration [(identifier) (scoped_identifier)] @name.module)
(module_declaration name: (_) @name.module)
(class_declaration) @def.class
(record_declaration) @def.class
(interface_declaration) @def.interface
(annotation_type_declaration) @def.interface
(enum_declaration) @def.enum
(enum_constant) @leaf.enum_member
(method_declaration) @def.method @function
(constructor_declaration) @def.constructor @function
(compact_constructor_declaration) @def.constructor @function
(annotation_type_element_declaration) @leaf.method
(lambda_expression) @block
(field_declaration declarator: (variable_declarator) @leaf.field)
(constant_declaration declarator: (variable_declarator) @leaf.constant)
(record_declaration parameters: (formal_parameters (formal_parameter) @leaf.field))
(record_declaration parameters: (formal_parameters (spread_parameter (variable_declarator) @leaf.field)))
(program (local_variable_declaration declarator: (variable_declarator) @leaf.variable))

(import_declaration) @import
(superclass (_) @base)
(super_interfaces (type_list (_) @base))
(object_creation_expression type: (_) @base.anonymous (class_body))
(extends_interfaces (type_list (_) @base))
(method_invocation name: (identifier) @tail)
(object_creation_expression type: (_) @call)
[
  (array_creation_expression type: (type_identifier) @use)
  (array_type element: (type_identifier) @use)
  (cast_expression type: (type_identifier) @use)
  (catch_type (type_identifier) @use)
  (class_literal (type_identifier) @use)
  (enhanced_for_statement type: (type_identifier) @use)
  (field_declaration type: (type_identifier) @use)
  (formal_parameter type: (type_identifier) @use)
  (generic_type . (type_identifier) @use)
  (instanceof_expression right: (type_identifier) @use)
  (local_variable_declaration type: (type_identifier) @use)
  (method_declaration type: (type_identifier) @use)
  (record_pattern . (identifier) @use)
  (record_pattern_component (type_identifier) @use)
  (resource type: (type_identifier) @use)
  (spread_parameter (type_identifier) @use)
  (throws (type_identifier) @use)
  (type_arguments (type_identifier) @use)
  (type_bound (type_identifier) @use)
  (type_list (type_identifier) @use)
  (type_pattern (type_identifier) @use)
  (wildcard (type_identifier) @use)
]
(scoped_type_identifier) @use
[(marker_annotation name: (_) @use) (annotation name: (_) @use)]
(method_invocation object: [(identifier) (field_access)] @use)
(field_access object: [(identifier) (field_access)] @use)
(method_reference . [(identifier) (field_access)] @use)
(type_parameter (type_identifier) @local)
(formal_parameter name: (identifier) @local)
(variable_declarator name: (identifier) @local)

[
  (if_statement) (ternary_expression)
  (for_statement) (enhanced_for_statement) (while_statement) (do_statement)
  (catch_clause)
] @branch
"else" @else
(if_statement alternative: (if_statement) @elseif)
(switch_expression) @switch
[(switch_label "case") (guard)] @decision
["&&" "||"] @logical
[(break_statement (identifier)) (continue_statement (identifier))] @jump

[(line_comment) (block_comment)] @comment

[
  (class_declaration (modifiers [(marker_annotation) (annotation)] @decorated))
  (record_declaration (modifiers [(marker_annotation) (annotation)] @decorated))
  (interface_declaration (modifiers [(marker_annotation) (annotation)] @decorated))
  (annotation_type_declaration (modifiers [(marker_annotation) (annotation)] @decorated))
  (enum_declaration (modifiers [(marker_annotation) (annotation)] @decorated))
  (method_declaration (modifiers [(marker_annotation) (annotation)] @decorated))
  (constructor_declaration (modifiers [(marker_annotation) (annotation)] @decorated))
  (field_declaration (modifiers [(marker_annotation) (annotation)] @decorated))
  (constant_declaration (modifiers [(marker_annotation) (annotation)] @decorated))
]
[
  (class_declaration (modifiers ["public" "protected" "private"] @visibility))
  (record_declaration (modifiers ["public" "protected" "private"] @visibility))
  (interface_declaration (modifiers ["public" "protected" "private"] @visibility))
  (annotation_type_declaration (modifiers ["public" "protected" "private"] @visibility))
  (enum_declaration (modifiers ["public" "protected" "private"] @visibility))
  (method_declaration (modifiers ["public" "protected" "private"] @visibility))
  (constructor_declaration (modifiers ["public" "protected" "private"] @visibility))
  (field_declaration (modifiers ["public" "protected" "private"] @visibility))
  (constant_declaration (modifiers ["public" "protected" "private"] @visibility))
]
