; Captures of Go. symbols/outline.py defines the capture names.

(package_clause (package_identifier) @name.module)
(function_declaration) @def.function @function
(method_declaration) @def.method @function
(func_literal) @block
(type_spec type: (struct_type)) @def.struct
(type_spec type: (interface_type)) @def.interface
(type_spec) @leaf.type
(type_alias) @leaf.type
(const_spec (identifier) @name.constant)
(var_spec name: (identifier) @name.variable)
(field_declaration name: (field_identifier) @name.field)
(method_elem) @leaf.method

(import_spec) @import
(struct_type (field_declaration_list (field_declaration !name type: (_) @base)))
(interface_type (type_elem . (_) @base .))
(call_expression function: (_) @call)
(type_conversion_expression type: [(generic_type) (parenthesized_type (generic_type))] @call)

(parameter_declaration name: (identifier) @local)
(variadic_parameter_declaration name: (identifier) @local)
(type_parameter_declaration name: (identifier) @local)
(short_var_declaration left: (expression_list (identifier) @local))
(range_clause left: (expression_list (identifier) @local))
(receive_statement left: (expression_list (identifier) @local))
(type_switch_statement alias: (expression_list (identifier) @local))

(function_declaration parameters: (parameter_list [
  (parameter_declaration name: (identifier) @parameter)
  (parameter_declaration !name) @parameter
  (variadic_parameter_declaration) @parameter
]))
(method_declaration parameters: (parameter_list [
  (parameter_declaration name: (identifier) @parameter)
  (parameter_declaration !name) @parameter
  (variadic_parameter_declaration) @parameter
]))

[(if_statement) (for_statement)] @branch
"else" @else
(if_statement alternative: (if_statement) @elseif)
[(expression_switch_statement) (type_switch_statement) (select_statement)] @switch
[(expression_case) (type_case) (communication_case)] @decision
["&&" "||"] @logical
[(goto_statement) (break_statement (label_name)) (continue_statement (label_name))] @jump

(comment) @comment
