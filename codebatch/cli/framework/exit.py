"""The end of a command.

Each error becomes an exit status, with `error:` and `hint:` lines on standard error, or JSON.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from itertools import pairwise

import click

from codebatch.cli.framework.groups import answer_schema_name
from codebatch.cli.output.streams import OutputPipeClosed
from codebatch.cli.output.terminal import printable_line
from codebatch.errors import CodebatchError, InternalError, InvalidInput, StoreError, StoreUnwritable
from codebatch.model.text.suggestions import closest_word
from codebatch.system.files.os_errors import ProcessRefused, fix_hint, is_write_refusal

COMPLETE_VARIABLE = "_CODEBATCH_COMPLETE"
EXIT_OUTPUT_CLOSED = 0
EXIT_INTERRUPTED = 130

_JSON_OPTION = re.compile(r"--json\Z|(-[qv]*o|--output=)json\Z")
_OUTPUT_OPTION = re.compile(r"(-[qv]*o|--output)\Z")
_INVALID_CHOICE_MESSAGE = re.compile(r"'(.*)' is not one of (.*)")
_REMOVED_OPTION_HINTS = {
    "--id": "ids cannot be chosen; name the batch instead: codebatch run PATH --name NAME; then use @NAME",
    "--metadata": "snapshots have no metadata; name the batch instead: codebatch run PATH --name NAME",
}
"""Options of CodeBatch 1 that were removed, each with an alternative."""
_RELATED_OPTIONS = {
    "--format": ("--output",),
    "--language": ("--lang", "--language"),
    "--max": ("--limit",),
    "--order": ("--sort", "--by"),
    "--order-by": ("--sort", "--by"),
    "--output-format": ("--output",),
    "--parallel": ("--jobs",),
    "--rule": ("--code",),
    "--select": ("--code",),
    "--sort": ("--by",),
    "--top": ("--limit",),
    "--workers": ("--jobs",),
}
"""Options of other programs, each with the options of codebatch that may have the same effect.

An option is only suggested if the command has it.
"""


def run_to_exit_status(command: click.Command, arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status. Every exception becomes a message and an exit status."""
    as_json = wants_json(arguments)
    try:
        refuse_empty_completion(os.environ)
        join_split_names(os.environ)
        result = command.main(args=list(arguments), prog_name="codebatch", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except (click.exceptions.Exit, SystemExit) as ended:  # click raises SystemExit after it has completed a word.
        return ended.exit_code if isinstance(ended, click.exceptions.Exit) else int(ended.code or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help(), err=True)
        return 2
    except click.ClickException as error:
        message, hint = _usage_message(error)
        return _report_error("usage", message, hint, error.exit_code, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return _report_error("interrupted", "interrupted", None, EXIT_INTERRUPTED, as_json=as_json)
    except OutputPipeClosed:
        return EXIT_OUTPUT_CLOSED
    except CodebatchError as error:
        return _report_error(
            error.code, error.message, error.hint, error.exit_status, as_json=as_json, lines=error.lines
        )
    except OSError as error:
        environment_error = _as_environment_error(error)
        if environment_error is None:
            return _report_bug(error, as_json=as_json)
        return _report_error(
            environment_error.code,
            environment_error.message,
            environment_error.hint,
            environment_error.exit_status,
            as_json=as_json,
        )
    except UnicodeEncodeError as error:
        strange = next((argument for argument in arguments if not _is_utf8_argument(argument)), None)
        if strange is None:
            return _report_bug(error, as_json=as_json)
        wrong = InvalidInput(f"the argument {strange!r} is not valid UTF-8")
        return _report_error(wrong.code, wrong.message, wrong.hint, wrong.exit_status, as_json=as_json)
    except BaseException as error:
        return _report_bug(error, as_json=as_json)


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line requests JSON, by `--json` or any spelling of `-o json`. It may be invalid."""
    pairs = pairwise(arguments)
    return any(map(_JSON_OPTION.match, arguments)) or any(
        _OUTPUT_OPTION.match(option) and value == "json" for option, value in pairs
    )


def refuse_empty_completion(environment: Mapping[str, str]) -> None:
    """Raise InvalidInput if the environment requests shell completion but lacks the words to complete."""
    if not environment.get(COMPLETE_VARIABLE, "").endswith("_complete"):
        return
    for name, form in (("COMP_WORDS", ""), ("COMP_CWORD", r"-?[0-9]{1,9}")):
        value = environment.get(name)
        is_number = environment[COMPLETE_VARIABLE] != "fish_complete" and form
        if value is None or (is_number and not re.fullmatch(form, value)):
            raise InvalidInput(
                f"environment variable {COMPLETE_VARIABLE} is set, but {name} is missing or invalid",
                hint="the completion script sets both variables; print the script with: codebatch completion bash",
            )


def join_split_names(environment: MutableMapping[str, str]) -> None:
    """Join `@` and the name after it to one word in the variables for completion.

    bash splits them, because it treats `@` as a word break.
    """
    if environment.get(COMPLETE_VARIABLE) != "bash_complete":
        return
    current = int(environment["COMP_CWORD"])
    words: list[str] = []
    for place, word in enumerate(environment["COMP_WORDS"].split("\n")):
        if words and words[-1] == "@":
            words[-1] += word
            current -= place <= int(environment["COMP_CWORD"])
        else:
            words.append(word)
    environment.update(COMP_WORDS="\n".join(words), COMP_CWORD=str(current))


def _usage_message(error: click.ClickException) -> tuple[str, str | None]:
    """Return the error message and the hint for an invalid command line."""
    if isinstance(error, click.NoSuchOption) and error.option_name in _REMOVED_OPTION_HINTS:
        return f"{error.option_name} is an option of CodeBatch 1", _REMOVED_OPTION_HINTS[error.option_name]
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.NoSuchOption) and context is not None:
        suggestion = _similar_option(error.option_name, context.command)
        hint = f"did you mean {suggestion!r}?" if suggestion else f"see: {context.command_path} --help"
        return _normalise_message(error.message), hint
    if isinstance(error, click.BadParameter) and (chosen := _INVALID_CHOICE_MESSAGE.match(error.message)):
        suggestion = closest_word(chosen[1], re.findall(r"[\w:.-]+", chosen[2]))
        if suggestion is not None:
            return _normalise_message(error.format_message()), f"did you mean {suggestion!r}?"
    return _normalise_message(error.format_message()), f"see: {context.command_path} --help" if context else None


def _similar_option(name: str, command: click.Command) -> str | None:
    """Return the option of a command that has a similar name or the same effect as an unknown option.

    Return None if there is none.
    """
    options = [name for option in command.params if isinstance(option, click.Option) for name in option.opts]
    if name in _RELATED_OPTIONS:
        return next((name for name in _RELATED_OPTIONS[name] if name in options), None)
    if not name.startswith("--"):
        return None
    # The dashes do not count: they would make any two options begin alike.
    suggestion = closest_word(name[2:], [option[2:] for option in options if option.startswith("--")])
    return None if suggestion is None else f"--{suggestion}"


def _as_environment_error(error: OSError) -> CodebatchError | None:
    """Return the error to report for an OSError with a known cause in the environment, such as a full disk.

    Return None for any other OSError.
    """
    if isinstance(error, FileNotFoundError) and error.filename is None and not _has_current_directory():
        return InvalidInput("the current directory no longer exists", hint="change to a directory that exists")
    # If the failed system call had a file descriptor as its argument, the file name in the error is a number.
    name = error.filename if isinstance(error.filename, str | bytes) else b""
    is_process = isinstance(error, ProcessRefused)
    place = "cannot start a process" if is_process else os.fsdecode(name) or "the disk"
    text = f"{place}: {error.strerror}"
    if is_write_refusal(error):
        is_known = is_process or error.errno in (errno.EMFILE, errno.ENFILE)
        hint = f"{fix_hint(error)}, then run the same command again" if is_known else None
        return StoreUnwritable(text, hint=hint)
    return None if error.filename is None else StoreError(text)


def _is_utf8_argument(argument: str) -> bool:
    return argument.encode("utf-8", "replace").decode("utf-8") == argument


def _has_current_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _normalise_message(message: str) -> str:
    """Return a message of click in the style of all other messages: one line, lower case, no full stop."""
    message = re.sub(r"\s*\n\s*", " ", message)
    lowered = message[:1].lower() + message[1:] if message[1:2].islower() else message
    return lowered.removesuffix(".")


def _report_error(
    code: str, message: str, hint: str | None, status: int, *, as_json: bool, lines: Sequence[str] = ()
) -> int:
    """Print an error and return its exit status. If a message has several lines, they are `lines`."""
    if as_json:
        import json  # Only JSON errors need this import.

        body = {"code": code, "message": message, "hint": hint, "exit": status}
        print(json.dumps({"error": body, "schema": answer_schema_name("error")}), file=sys.stderr)
    else:
        first, *further = lines or [message]
        print("\n".join(map(printable_line, [f"error: {first}", *(f"  {line}" for line in further)])), file=sys.stderr)
        if hint:
            print("\n".join(_wrap_hint(printable_line(f"hint: {hint}"))), file=sys.stderr)
    return status


def _wrap_hint(hint: str) -> Sequence[str]:
    """Wrap a hint to the width of the terminal, if there is one.

    A hint with a command is not wrapped, so that the command can be copied.
    """
    from codebatch.cli.output.tables import wrap_text
    from codebatch.cli.output.widths import terminal_width

    columns = terminal_width(sys.stderr)
    return [hint] if columns is None or "codebatch " in hint else wrap_text(hint, columns, " " * len("hint: "))


def _report_bug(error: BaseException, *, as_json: bool) -> int:
    """Report an internal error. The traceback is written to a file that the message names."""
    import tempfile  # Only internal errors need these imports.
    import traceback

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="codebatch-bug-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            traceback.print_exception(error, file=file)
            hint = f"please report this bug; the traceback is in {file.name}"
    except OSError:
        hint = "please report this bug"
    summary = traceback.format_exception_only(error)[-1].strip()
    return _report_error(
        InternalError.code, f"internal error: {summary}", hint, InternalError.exit_status, as_json=as_json
    )
