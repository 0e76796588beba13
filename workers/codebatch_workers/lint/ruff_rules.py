"""The rules of ruff that lint runs, and the severity of each.

Ruff has no severities, and its default rules change by release. The rules here find mistakes. Rules about style are not
included, because formatters fix style.

If at least two findings of a rule in real projects were reviewed, the reviews determine its severity
(tests/signal/README.md). Among the findings of rules about risks (S, ASYNC) and versions (YTT), developers would fix
hardly one in ten. So such a rule is a hint if it has fewer reviews. Rules that depend on other files (I, INP, TID, TC)
are excluded, because the findings in a file must depend only on this file. `tests/tasks/lint/test_lint.py` checks that
each rule is a stable rule of the pinned ruff.
"""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.model.record import Severity

_CODES_BY_SEVERITY: Mapping[Severity, str] = {
    # The code cannot run, always raises, or is a vulnerability by itself.
    "error": """
        F406 F501 F502 F503 F505 F506 F507 F508 F509 F521 F524 F525 F631 F634 F722 F821 F822 F823
        B030
        PLE0100 PLE0116 PLE0237 PLE0241 PLE0302 PLE0303 PLE0305 PLE0307 PLE0308 PLE0309 PLE0604 PLE0643
        PLE1132 PLE1205 PLE1206 PLE1300 PLE1307 PLE1519 PLE1520
        PLW0133 PLW0245 PLW1501
        RUF008 RUF016 RUF026
        S506
        G101
    """,
    # The code runs, but most likely not as intended.
    "warning": """
        F401 F504 F522 F523 F601 F602 F632 F633 F811 F901 W605
        B002 B005 B006 B012 B015 B016 B018 B021 B022 B025 B029 B032 B035
        PLE0304 PLE1310 PLE1507 PLE2510 PLE2512 PLE2513 PLE2514 PLE2515
        PLW0128 PLW0129 PLW0131 PLW0177 PLW0711 PLW1507 PLW1509 PLW2101
        PIE794 PIE796 PGH005
        RUF018 RUF024 RUF033 RUF034 RUF040 RUF049 RUF060 RUF068
        S504
        LOG001 LOG002
    """,
    # The problem is small. It can be fixed when the file is edited for another reason.
    "info": """
        F841
        B014
        PLW0127
        G010
        RUF048
        S306
    """,
    # The code could be simpler, or most findings are intended.
    "hint": """
        F402 F403 F405 F541 F842 E711 E712 E713 E714 E721 E722
        B003 B004 B007 B008 B011 B013 B017 B019 B020 B023 B024 B026 B027 B031 B033 B034 B039 B904
        PLE0101 PLE0605 PLE0704
        PLR0124 PLW0120 PLW0211 PLW0406 PLW0602 PLW0604 PLW1508
        T100
        TRY203
        RUF006 RUF009 RUF013 RUF017 RUF020 RUF030 RUF032 RUF064
        S102 S103 S113 S201 S202 S301 S307 S323 S324 S501 S502 S503 S505 S507 S508 S509 S602 S605 S608 S612 S701 S702
        SIM222 SIM223
        ASYNC105 ASYNC115 ASYNC116 ASYNC210 ASYNC220 ASYNC221 ASYNC222 ASYNC230 ASYNC251
        G201 G202 LOG007 LOG009 LOG014
        YTT101 YTT102 YTT103 YTT201 YTT202 YTT203 YTT204 YTT301 YTT302 YTT303
    """,
}

SEVERITY_BY_CODE: Mapping[str, Severity] = {
    code: severity for severity, codes in _CODES_BY_SEVERITY.items() for code in codes.split()
}

# Errors that Python's compiler finds, but its parser does not, such as `return` outside a function. The task `parse`
# reports these errors, so lint does not.
SYNTAX_CODES = frozenset(
    {
        *("F404", "F407", "F621", "F622", "F701", "F702", "F704", "F706", "F707"),
        *("PLE0115", "PLE0117", "PLE0118", "PLE1142", "PLE1700"),
    }
)
