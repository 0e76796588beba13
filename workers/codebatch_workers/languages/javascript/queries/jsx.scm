; JSX in TypeScript.

(jsx_opening_element name: (_) @element)
(jsx_self_closing_element name: (_) @element)
; `<div>` is HTML. `<Menu>` and `<ui.Menu>` call the named component.
([(jsx_opening_element name: (_) @component) (jsx_self_closing_element name: (_) @component)]
  (#match? @component "\\A[^a-z]|\\."))
