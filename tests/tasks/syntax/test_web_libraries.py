"""Tests of copies of web libraries: their first comment identifies them."""

from __future__ import annotations

import pytest

from tests.support.source_files import source

BOOTSTRAP = "/*!\n  * Bootstrap v5.3.7 (https://getbootstrap.com/)\n  * Licensed under MIT\n  */\n"
MIRROR = "// CodeMirror, copyright (c) by A and others\n// Distributed under an MIT license: https://codemirror.net/5/LICENSE\n"
OWN = '/*\n * Copyright (c) 2020 Shop Ltd\n * Licensed under the Apache License, Version 2.0 (the "License")\n */\n'


@pytest.mark.parametrize(
    ("path", "banner"),
    [
        ("upload/assets/bootstrap/js/bootstrap.bundle.js", BOOTSTRAP),
        ("static/css/bootstrap.css", f'@charset "UTF-8";\n{BOOTSTRAP}'),
        ("app/view/javascript/bootstrap/js/x.js", BOOTSTRAP),
        ("public/font-awesome/css/all.css", "/*! Font Awesome Free 6.7.2 by @fontawesome - https://fontawesome.com */"),
        ("assets/codemirror/mode/z80/z80.js", MIRROR),
        ("assets/codemirror-5.65/addon/hint/hint.js", MIRROR),
        (
            "assets/ckeditor/ckeditor.js",
            "/*\nCopyright (c) 2023, A. For licensing, see https://ckeditor.com/legal/\n*/",
        ),
        ("static/js/lib/jquery/jquery-ui.js", "/*! jQuery UI - v1.12.1 - 2020-11-03\n* http://jqueryui.com */"),
        ("static/js/jquery.fileupload.js", "/*\n * jQuery File Upload Plugin 10.1.0\n * https://github.com/b/f\n */"),
        ("static/js/uncompress.js", "// Copyright (c) 2017 A\n// MIT License\n// https://github.com/a/uncompress.js\n"),
        (
            "static/js/soundmanager2.js",
            "/** @license\n * SoundManager 2: Sound\n * http://a.com/projects/soundmanager2/\n*/",
        ),
        ("static/js/moment.js", "//! moment.js\n//! version : 2.29.4\n//! authors : A\n//! license : MIT\n"),
        (
            "static/css/tom-select.css",
            "/**\n * Tom Select\n */\n/**\n * tom-select.css (v2.6.1)\n * Copyright (c) A\n */",
        ),
        ("web/public/js/knockout-3.5.1.js", "/*!\n * Knockout JavaScript library v3.5.1\n * (c) The team\n */"),
    ],
)
def test_copy_of_a_web_library_is_vendored(path: str, banner: str) -> None:
    assert source(path, f"{banner}\nvar x = 1;\n").file_class == "vendored"


@pytest.mark.parametrize(
    ("path", "banner"),
    [
        # The repository of the library itself.
        ("js/bootstrap.js", BOOTSTRAP),
        ("lib/codemirror.js", MIRROR),
        ("src/bootstrap/bootstrap.js", BOOTSTRAP),
        # Other names: of the project itself, or of its dependencies.
        ("static/js/checkout.js", BOOTSTRAP),
        ("static/js/app.js", "/*!\n * Shop App v1.2.3\n * https://shop.example\n * Licensed under MIT\n */"),
        ("static/js/checkout.js", OWN),
        ("static/js/checkout.js", f"/* checkout.js */\n{OWN}"),
        ("static/js/checkout.js", "/* Checkout.\n * Needs jQuery v1.3.2, licensed under MIT. */"),
        (
            "static/js/checkout.js",
            "/* checkout of the shop, see https://shop.example/docs/3.2/checkout.html, licence MIT */",
        ),
        (
            "static/js/treeview.js",
            "/* SPDX-License-Identifier: MIT */\n// https://a.io/docs/3.2/javascript/treeview.html\n",
        ),
        ("static/js/timezones.js", "// From https://a.io/moment/LICENSE\n// and https://www.iana.org/time-zones\n"),
        ("assets/www/css/index.css", "/*\n * Licensed to A under the License\n * http://www.apache.org/licenses/\n */"),
        ("static/mozilla/a.js", "/* Mozilla Public License, v. 2.0, https://mozilla.org/MPL/2.0/ */"),
        # No banner, or only a name or a version.
        ("static/js/moment.js", "/* moment.js */"),
        ("static/js/moment.js", "/* moment.js v2.29.4 */"),
        ("static/js/moment.js", "var moment = 'moment v2.29.4, https://momentjs.com, MIT license';"),
        # This is not a script.
        ("static/bootstrap.py", "# Bootstrap v5.3.7 (https://getbootstrap.com/), licensed under MIT\n"),
    ],
)
def test_project_code_is_not_vendored(path: str, banner: str) -> None:
    assert source(path, f"{banner}\nx = 1\n").file_class == "text"


def test_attributes_override_the_vendored_class() -> None:
    assert source("assets/bootstrap.js", BOOTSTRAP, {"attributes": b"vendored="}).file_class == "text"
