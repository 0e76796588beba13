"""The command `cat-object`: the content of an object of the store."""

from __future__ import annotations

import base64
import sys

import click
import msgspec

from codebatch.cli.framework.commands import command
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.cli.framework.read_report import explain_option
from codebatch.errors import InvalidId, UnknownId
from codebatch.model.digest import DIGEST_PATTERN, Digest

_VERSION_1_PREFIX = "sha256:"


class CatObjectAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch cat-object`. `bytes` is the size of the object."""

    object: str
    bytes: int
    content_b64: str


@command("cat-object")
@click.argument("name", metavar="SHA256")
@explain_option
@with_common_options
def cat_object(context: CommandContext, name: str) -> None:
    """Print an object of the store.

    An object is the content of a file. SHA256 is the digest of the object: the value of `object` in `codebatch files
    --json`.

    On a terminal, control characters are shown as escapes.
    """
    digest = name.removeprefix(_VERSION_1_PREFIX)
    if not DIGEST_PATTERN.match(digest):
        raise InvalidId(
            f"{name!r} is not a sha256 (64 hex digits)",
            hint="list the files with their sha256 (JSON member `object`) with: codebatch files --json",
        )
    objects = context.store_place.open().objects()
    if objects.find_location(Digest(digest)) is None:
        raise UnknownId(
            f"object {digest} is missing or damaged in the store",
            hint="list the object digest of each file with: codebatch files --json",
        )
    content = objects.read(Digest(digest))
    if context.as_json or sys.stdout.isatty():
        answer = CatObjectAnswer(
            object=digest, bytes=len(content), content_b64=base64.b64encode(content).decode("ascii")
        )
        context.print(answer, content.decode("utf-8", "backslashreplace").split("\n"))
        return
    context.display.erase_for_output()
    sys.stdout.buffer.write(content)
    sys.stdout.flush()
