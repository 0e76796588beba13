; Captures of Scala. symbols/outline.py defines the capture names.

(package_clause name: (_) @name.module)
(class_definition) @def.class
(object_definition) @def.class
(trait_definition) @def.trait
(enum_definition) @def.enum
(simple_enum_case name: (_) @name.enum_member)
(full_enum_case name: (_) @name.enum_member)
(type_definition) @leaf.type
(function_definition) @def.function @function
(function_declaration) @leaf.function
(lambda_expression) @block
(package_object) @def.class
(val_definition pattern: (_) @pattern.variable)
(var_definition pattern: (_) @pattern.variable)
[(val_declaration name: (_) @pattern.variable) (var_declaration name: (_) @pattern.variable)]
(given_definition name: (_) @name.variable)
(class_parameter ["val" "var"] name: (_) @name.field)
(class_definition "case" class_parameters: (class_parameters (class_parameter name: (_) @name.field)))

(import_declaration) @import
(instance_expression [(type_identifier) (generic_type) (stable_type_identifier) (compound_type)] @base.anonymous (template_body))
(extends_clause [(type_identifier) (generic_type) (stable_type_identifier) (compound_type)] @base)
(call_expression function: (_) @call)
(instance_expression . (_) @call)
(generic_function function: (_) @call)
(infix_expression operator: (identifier) @tail)
(postfix_expression (_) . (identifier) @tail .)
(interpolated_string_expression interpolator: (identifier) @tail)
[
  (_ type: (type_identifier) @use)
  (_ return_type: (type_identifier) @use)
  (annotation name: (type_identifier) @use)
  (compound_type (type_identifier) @use)
  (function_type (type_identifier) @use)
  (infix_type (type_identifier) @use)
  (parameter_types (type_identifier) @use)
  (self_type (type_identifier) @use)
  (tuple_type (type_identifier) @use)
  (type_arguments (type_identifier) @use)
]
[(stable_type_identifier) (stable_identifier)] @use
(field_expression value: (identifier) @use)
(arguments (identifier) @use)
(case_clause pattern: (identifier) @use)
(infix_expression left: (identifier) @use)
(infix_expression right: (identifier) @use)
(type_parameters name: (identifier) @local)
(parameter name: (identifier) @local)
(class_parameter name: (identifier) @local)
(val_definition pattern: (identifier) @local)
(var_definition pattern: (identifier) @local)

(function_definition (parameters (parameter) @parameter))

[(if_expression) (for_expression) (while_expression) (do_while_expression)] @branch
(if_expression "else" @else)
(if_expression alternative: (if_expression) @elseif)
[(match_expression) (catch_clause)] @switch
(case_clause) @decision
(catch_clause "case" @decision)
(guard) @decision
(call_expression arguments: (case_block) @block)
((operator_identifier) @logical (#any-of? @logical "&&" "||"))

[(comment) (block_comment)] @comment
