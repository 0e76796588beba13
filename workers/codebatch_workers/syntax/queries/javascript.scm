; What JavaScript's grammar has for itself.

(class_heritage (_) @base)
(field_definition property: (_) @name.field)

(jsx_opening_element name: (_) @element)
(jsx_self_closing_element name: (_) @element)

[
  (function_declaration parameters: (formal_parameters [(identifier) (assignment_pattern) (rest_pattern) (object_pattern) (array_pattern)] @parameter))
  (generator_function_declaration parameters: (formal_parameters [(identifier) (assignment_pattern) (rest_pattern) (object_pattern) (array_pattern)] @parameter))
  (function_expression parameters: (formal_parameters [(identifier) (assignment_pattern) (rest_pattern) (object_pattern) (array_pattern)] @parameter))
  (generator_function parameters: (formal_parameters [(identifier) (assignment_pattern) (rest_pattern) (object_pattern) (array_pattern)] @parameter))
  (arrow_function parameters: (formal_parameters [(identifier) (assignment_pattern) (rest_pattern) (object_pattern) (array_pattern)] @parameter))
  (method_definition parameters: (formal_parameters [(identifier) (assignment_pattern) (rest_pattern) (object_pattern) (array_pattern)] @parameter))
]
