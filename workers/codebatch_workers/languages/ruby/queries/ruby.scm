; Captures of Ruby. symbols/outline.py defines the capture names.

(module) @def.module
(class) @def.class
(method) @def.function @function
(singleton_method) @def.function @function
[(lambda) (block) (do_block)] @block
(assignment left: (constant) @name.constant)
(assignment left: (scope_resolution name: (constant) @name.constant))
(operator_assignment left: (constant) @name.constant)
(left_assignment_list (constant) @name.constant)
(destructured_left_assignment (constant) @name.constant)
(rest_assignment (constant) @name.constant)

(superclass (_) @base)
((call !receiver method: (identifier) @_name arguments: (argument_list [(constant) (scope_resolution)] @base))
  (#any-of? @_name "include" "prepend" "extend"))
[(constant) (scope_resolution)] @use
(call method: (_) @tail)
((call !receiver method: (identifier) @_name) @import (#any-of? @_name "require" "require_relative" "load" "autoload"))

; Names that are no calls: of methods, and of local variables. All other plain names are calls (symbols.py).
(identifier) @plain_name
[(method name: (identifier) @method_name) (singleton_method name: (identifier) @method_name)]
(setter (identifier) @method_name)
[(alias (identifier) @method_name) (undef (identifier) @method_name)]
(singleton_class) @singleton
[(assignment left: (identifier) @bound_name) (operator_assignment left: (identifier) @bound_name)]
(left_assignment_list (identifier) @bound_name)
(destructured_left_assignment (identifier) @bound_name)
(rest_assignment (identifier) @bound_name)
[(method_parameters (identifier) @bound_name) (block_parameters (identifier) @bound_name)]
[(lambda_parameters (identifier) @bound_name) (destructured_parameter (identifier) @bound_name)]
[(optional_parameter name: (identifier) @bound_name) (keyword_parameter name: (identifier) @bound_name)]
[(splat_parameter name: (identifier) @bound_name) (hash_splat_parameter name: (identifier) @bound_name)]
(block_parameter name: (identifier) @bound_name)
[(for pattern: (identifier) @bound_name) (exception_variable (identifier) @bound_name)]
[(in_clause pattern: (identifier) @bound_name) (match_pattern pattern: (identifier) @bound_name)]
[(array_pattern (identifier) @bound_name) (find_pattern (identifier) @bound_name)]
[(keyword_pattern value: (identifier) @bound_name) (keyword_pattern !value key: (hash_key_symbol) @bound_name)]
(as_pattern name: (identifier) @bound_name)

[
  (if) (unless) (if_modifier) (unless_modifier) (conditional)
  (while) (until) (for) (while_modifier) (until_modifier)
  (rescue)
] @branch
(elsif) @elif
(if alternative: (else) @else)
(unless alternative: (else) @else)
(elsif alternative: (else) @else)
[(case) (case_match)] @switch
[(when) (in_clause) (if_guard) (unless_guard)] @decision
["&&=" "||="] @decision
["&&" "||" "and" "or"] @logical

(comment) @comment
