; What the tasks read of Ruby. Capture names: see ../outline.py.

(module) @def.module
(class) @def.class
(method) @def.function @function
(singleton_method) @def.function @function
[(lambda) (block) (do_block)] @block
(assignment left: (constant) @name.constant)

(superclass (_) @base)
(call method: (_) @tail)
((call !receiver method: (identifier) @_name) @import (#any-of? @_name "require" "require_relative" "load" "autoload"))

[
  (if) (unless) (elsif) (if_modifier) (unless_modifier) (conditional)
  (while) (until) (for) (while_modifier) (until_modifier)
  (when) (in_clause) (rescue)
] @decision
["&&" "||" "and" "or"] @decision

(comment) @comment
