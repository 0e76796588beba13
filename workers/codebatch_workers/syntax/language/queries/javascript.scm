; What JavaScript's grammar has for itself.

(class_heritage (_) @base)
(field_definition property: (_) @name.field)

(jsx_opening_element name: (_) @element)
(jsx_self_closing_element name: (_) @element)

(using_declaration (variable_declarator) @leaf.constant)
