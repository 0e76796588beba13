"""Hypothesis strategies for records and filters of all kinds, similar enough that some match."""

from __future__ import annotations

from hypothesis import strategies as st

from codebatch.model.entry import path_fields
from codebatch.model.record import Diagnostic, Edge, File, Metric, Names, Record, Symbol
from codebatch.query.filters.filters import RecordFilter

TEXTS = ["f", "F", "fg", 'f"', "f\\", "f\n", "\x01", "Ä", "K", "", "kind", "*"]
texts = st.sampled_from(TEXTS)
filter_texts = st.lists(st.sampled_from([*TEXTS, "f*", 'f"*', "Ä*", "\udcff", "\udcff*"]), max_size=2).map(tuple)
paths = st.sampled_from([b"src/K.py", "src/\u212a.py".encode(), b"a\\b", b'q"', b"x\ny", b"\xff/src", b"t/src/k.py"])
CONDITIONS = [
    "", "name == 'f'", "'Ä' == name and line > 1", "name in ('f\"', 'fg')", "name in ('f', None)", "not name == 'f'",
    "name == 'f' or line == 1", "scope == ''", "parameters == 'f'", "tool == 'codebatch' and code != 'f'",
    "path == 'a\\\\b'", "path == '\\\\xff/src'", "path == 'x\\ny'", "dir == 'src'", "lang == 'f'", "class_ == 'text'",
    "kind == 'edge' and target == 'f.g'", "name == '\\udcff'", "'f' in name", "name == 'f' == scope",
]  # fmt: skip
filter_paths = st.sampled_from(
    ["", "src", "K", "k.", "\u212a", "\\", '"', "ff", "s*c/", "src/?.py", "[t]*", "*", "x*y"]
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    path, path_b64 = path_fields(draw(paths))
    text, line = draw(texts), draw(st.integers(1, 2))
    kind = draw(st.sampled_from(["file", "diagnostic", "metric", "symbol", "names", "edge"]))
    match kind:
        case "file":
            lang = draw(texts)
            return File(
                path=path, path_b64=path_b64, lang=lang, encoding="utf-8", lines=1, class_="text", parse="ok"
            )  # fmt: skip
        case "diagnostic":
            return Diagnostic(
                path=path, path_b64=path_b64, line=line, column=1, end_line=line, end_column=1, code=text,
                severity=draw(st.sampled_from(["error", "hint"])), message=draw(texts), tool=draw(texts),
            )  # fmt: skip
        case "metric":
            return Metric(path=path, path_b64=path_b64, metric=text, value=line)
        case "symbol":
            return Symbol(
                path=path, path_b64=path_b64, name=text, symbol_type="function", qualified=text, scope=draw(texts),
                line=line, column=1, end_line=line, end_column=1, parameters=(draw(texts),),
            )  # fmt: skip
        case "names":
            return Names(path=path, path_b64=path_b64, names=(text,), lines=(line,))
        case _:
            target = f"{draw(texts)}.{text}"
            return Edge(path=path, path_b64=path_b64, edge_type="calls", source="", target=target, line=line)


filters = st.one_of(
    st.builds(RecordFilter, names=filter_texts, path=filter_paths, where=st.sampled_from(CONDITIONS)),
    st.builds(RecordFilter, codes=filter_texts, tools=filter_texts, severities=st.sampled_from([(), ("error",)])),
    st.builds(RecordFilter, targets=filter_texts, path=filter_paths),
    st.builds(RecordFilter, metrics=filter_texts),
    st.builds(RecordFilter, kinds=st.sampled_from([("file",), ("file", "edge")]), languages=filter_texts),
)
