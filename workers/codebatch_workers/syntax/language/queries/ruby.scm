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
[(constant) (scope_resolution)] @use
(call method: (_) @tail)
((call !receiver method: (identifier) @_name) @import (#any-of? @_name "require" "require_relative" "load" "autoload"))

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
