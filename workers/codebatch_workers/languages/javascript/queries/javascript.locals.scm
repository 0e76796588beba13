; Captures that only the grammar of JavaScript has.

(using_declaration (variable_declarator name: (_) @definition.variable))
