; Captures of Python. symbols/outline.py defines the capture names.

(class_definition) @def.class
(function_definition) @def.function @function
(type_alias_statement) @leaf.type

(assignment left: (identifier) @name.variable)
(assignment left: [(pattern_list) (tuple_pattern) (list_pattern)] @pattern.variable)
([
  (assignment left: (attribute object: (_) @_object attribute: (_) @field))
  (pattern_list (attribute object: (_) @_object attribute: (_) @field))
  (tuple_pattern (attribute object: (_) @_object attribute: (_) @field))
  (augmented_assignment left: (attribute object: (_) @_object attribute: (_) @field))
  (for_statement left: (attribute object: (_) @_object attribute: (_) @field))
  (as_pattern_target (attribute object: (_) @_object attribute: (_) @field))
] (#eq? @_object "self"))
(named_expression name: (identifier) @name.variable)
(for_statement left: (_) @pattern.variable)
(as_pattern_target) @pattern.variable

(import_statement) @import
(import_from_statement) @import
(future_import_statement) @import

(class_definition superclasses: (argument_list [(identifier) (attribute) (subscript) (call)] @base))
(decorator . (_) @decorator)
((decorated_definition (decorator . (_) @_decorator) definition: (function_definition) @property)
  (#match? @_decorator "(?s)\\A(?:(?:.*[._])?property|.+\\.(?:setter|getter|deleter))\\Z"))
(call function: (_) @call)

[(if_statement) (conditional_expression) (for_statement) (while_statement) (except_clause)] @branch
(elif_clause) @elif
(if_statement (else_clause) @else)
(match_statement) @switch
[(for_in_clause) (if_clause) (case_clause)] @decision
(boolean_operator operator: _ @logical)
(lambda) @nest

(comment) @comment
(expression_statement . (string) @docstring .)
