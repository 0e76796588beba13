; Captures that JavaScript and TypeScript share. symbols/outline.py defines the capture names.

(function_declaration) @def.function @function
(generator_function_declaration) @def.function @function
(function_expression) @function
(generator_function) @function
(arrow_function) @function
(method_definition) @def.method @function
(class_declaration) @def.class
(class_static_block) @block
(export_statement value: [(function_expression !name) (generator_function !name) (arrow_function)] @def.function)
(export_statement value: (class !name) @def.class)
(export_statement value: [(object) (array) (call_expression) (new_expression)] @leaf.variable)

(variable_declarator value: [(arrow_function) (function_expression) (generator_function)]) @def.function
(variable_declarator value: (class)) @def.class
(assignment_expression
  left: [(member_expression) (identifier)]
  right: [(arrow_function) (function_expression) (generator_function)]) @def.assigned
(lexical_declaration kind: "const" (variable_declarator) @leaf.constant)
(lexical_declaration kind: "let" (variable_declarator) @leaf.variable)
(variable_declaration (variable_declarator) @leaf.variable)

(import_statement) @import
(import_statement source: (_) @source)
(import_clause (identifier) @bound)
(namespace_import (identifier) @bound)
(import_specifier !alias name: (_) @bound)
(import_specifier alias: (_) @bound)
(export_statement source: (string) @source)
((call_expression
  function: [(identifier) (import)] @_function
  arguments: [
    (arguments . [(string) (template_string)] @importer)
    (arguments . (comment)+ . [(string) (template_string)] @importer)
  ])
  (#any-of? @_function "require" "import"))

(call_expression function: (_) @call)
(new_expression constructor: (_) @call)
(decorator [(identifier) (member_expression) (parenthesized_expression)] @call)
(decorator (_) @decorated)

(arrow_function parameter: (identifier) @parameter)

[
  (if_statement) (ternary_expression)
  (for_statement) (for_in_statement) (while_statement) (do_statement)
  (catch_clause)
] @branch
(else_clause) @else
(else_clause (if_statement) @elseif)
(switch_statement) @switch
(switch_case) @decision
; Only tokens are captured. A pattern with the enclosing expression would stay open during all of a long chain.
["&&" "||"] @logical
["??" "&&=" "||=" "??="] @decision
[(break_statement label: (_)) (continue_statement label: (_))] @jump

[(comment) (html_comment)] @comment
