; Captures that only C++ has.

(class_specifier name: (_) body: (_)) @def.class
(namespace_definition) @def.namespace
(namespace_alias_definition name: (_) @name.namespace)
(alias_declaration) @leaf.type
(concept_definition) @leaf.type
(field_declaration_list (declaration declarator: (_) @leaf.field))
(lambda_expression) @block
(field_declaration_list (access_specifier) @access)

(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @base)
(new_expression type: (_) @call)
(compound_literal_expression type: (_) @call)

[(for_range_loop) (catch_clause)] @branch
