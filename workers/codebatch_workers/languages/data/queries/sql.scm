; Captures of SQL: created objects. symbols/outline.py defines the capture names.

(create_table (object_reference name: (_) @name.class))
(create_view (object_reference name: (_) @name.class))
(create_materialized_view (object_reference name: (_) @name.class))
(create_function (object_reference name: (_) @name.function))
(create_procedure (object_reference name: (_) @name.function))

[(comment) (marginalia)] @comment
