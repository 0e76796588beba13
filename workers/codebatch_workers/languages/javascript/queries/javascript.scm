; Captures that only the grammar of JavaScript has.

(class_heritage (_) @base)
(field_definition property: (_) @name.field)

(jsx_opening_element name: (_) @element)
(jsx_self_closing_element name: (_) @element)
; `<div>` is HTML. `<Menu>` and `<ui.Menu>` call the named component.
([(jsx_opening_element name: (_) @component) (jsx_self_closing_element name: (_) @component)]
  (#match? @component "\\A[^a-z]|\\."))

(using_declaration (variable_declarator) @leaf.constant)
