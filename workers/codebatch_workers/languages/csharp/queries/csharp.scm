; Captures of C#. symbols/outline.py defines the capture names.

(namespace_declaration) @def.namespace
(file_scoped_namespace_declaration name: (_) @name.namespace)
(class_declaration) @def.class
(record_declaration) @def.class
(struct_declaration) @def.struct
(interface_declaration) @def.interface
(enum_declaration) @def.enum
(enum_member_declaration) @leaf.enum_member
(delegate_declaration) @leaf.type
(method_declaration) @def.method @function
(local_function_statement) @def.function @function
(constructor_declaration) @def.constructor @function
(destructor_declaration) @function @accessor
(operator_declaration) @function @accessor
(conversion_operator_declaration) @function @accessor
(accessor_declaration body: (_)) @function @accessor
(record_declaration (parameter_list (parameter) @leaf.property))
(lambda_expression) @block
(anonymous_method_expression) @block
(property_declaration) @leaf.property
(event_declaration) @leaf.field
(field_declaration (variable_declaration (variable_declarator name: (_) @name.field)))
(event_field_declaration (variable_declaration (variable_declarator name: (_) @name.field)))

(using_directive) @import
(base_list (_) @base)
(invocation_expression function: (_) @call)
(object_creation_expression type: (_) @call)
; Names of types, and the first names of chains that may begin with a type.
(_ type: [(identifier) (generic_name) (qualified_name)] @use)
(_ returns: [(identifier) (generic_name) (qualified_name)] @use)
(type_argument_list [(identifier) (generic_name) (qualified_name)] @use)
(as_expression right: [(identifier) (generic_name) (qualified_name)] @use)
(attribute name: (_) @attribute)
(member_access_expression expression: [(identifier) (generic_name)] @owner)
(constant_pattern (identifier) @owner)
(type_parameter name: (identifier) @local)
(preproc_if) @conditional
[
  (class_declaration (type_parameter_list) @type_parameters)
  (struct_declaration (type_parameter_list) @type_parameters)
  (interface_declaration (type_parameter_list) @type_parameters)
  (record_declaration (type_parameter_list) @type_parameters)
  (delegate_declaration (type_parameter_list) @type_parameters)
]

[
  (if_statement) (conditional_expression)
  (for_statement) (foreach_statement) (while_statement) (do_statement)
  (catch_clause)
] @branch
(if_statement "else" @else)
(if_statement alternative: (if_statement) @elseif)
[(switch_statement) (switch_expression)] @switch
(switch_section "case") @decision
(switch_expression_arm) @decision
[(when_clause) (catch_filter_clause)] @decision
["??" "??="] @decision
["&&" "||"] @logical
(goto_statement) @jump

(comment) @comment
