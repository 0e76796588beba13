; Captures of Rust. symbols/outline.py defines the capture names.

(function_item) @def.function @function
(function_signature_item) @leaf.function
(closure_expression) @block
(struct_item) @def.struct
(union_item) @def.union
(enum_item) @def.enum
(trait_item) @def.trait
(mod_item) @def.module
(impl_item) @impl
(enum_variant) @leaf.enum_member
(field_declaration name: (field_identifier) @name.field)
(type_item) @leaf.type
(associated_type) @leaf.type
(const_item) @leaf.constant
(static_item) @leaf.variable
(macro_definition) @leaf.macro

(use_declaration) @import
(extern_crate_declaration) @import
(mod_item !body) @import
(impl_item trait: (_) @base)
(trait_item bounds: (trait_bounds (_) @base))
(call_expression function: (_) @call)
(macro_invocation macro: (_) @macro)
(token_tree (identifier) @token_call . (token_tree . "("))
(token_tree [">" ">>"] @token_call . (token_tree . "("))
(token_tree (identifier) @macro . "!" . (token_tree))
((macro_invocation macro: (_) @_macro (token_tree (string_literal) @source.file)) (#eq? @_macro "include"))
((token_tree (identifier) @_macro . "!" . (token_tree (string_literal) @source.file)) (#eq? @_macro "include"))
(attribute (token_tree) @attribute)

[(if_expression) (for_expression) (while_expression) (loop_expression)] @branch
(else_clause) @else
(else_clause (if_expression) @elseif)
(match_expression) @switch
[(match_arm) (try_expression)] @decision
(match_pattern "if" @decision)
(binary_expression operator: ["&&" "||"] @logical)
(let_chain "&&" @logical)
[(break_expression (label)) (continue_expression (label))] @jump

[(line_comment) (block_comment)] @comment

[
  (function_item (visibility_modifier) @visibility)
  (function_signature_item (visibility_modifier) @visibility)
  (struct_item (visibility_modifier) @visibility)
  (union_item (visibility_modifier) @visibility)
  (enum_item (visibility_modifier) @visibility)
  (trait_item (visibility_modifier) @visibility)
  (mod_item (visibility_modifier) @visibility)
  (field_declaration (visibility_modifier) @visibility)
  (type_item (visibility_modifier) @visibility)
  (const_item (visibility_modifier) @visibility)
  (static_item (visibility_modifier) @visibility)
]
