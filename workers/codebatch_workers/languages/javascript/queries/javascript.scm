; Captures that only the grammar of JavaScript has.

; A class in an expression has no name of its own, unless a variable or an export gives one to it.
(class_declaration (class_heritage (_) @base))
[(variable_declarator (class (class_heritage (_) @base))) (export_statement (class (class_heritage (_) @base)))]
(class (class_heritage (_) @base.anonymous))
(field_definition property: (_) @name.field)

(jsx_opening_element name: (_) @element)
(jsx_self_closing_element name: (_) @element)
; `<div>` is HTML. `<Menu>` and `<ui.Menu>` call the named component.
([(jsx_opening_element name: (_) @component) (jsx_self_closing_element name: (_) @component)]
  (#match? @component "\\A[^a-z]|\\."))

(using_declaration (variable_declarator) @leaf.constant)
