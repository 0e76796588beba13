"""The program that every Python process of codebatch runs: `python -S python_launcher.py MODULE SETTINGS ARGUMENT...`.

It sets the module search path before it imports any module that is not of the interpreter, then runs MODULE like
`python -m MODULE`. SETTINGS is JSON, also as hexadecimal digits (python_start.py). Without `-S`, Python itself would
already have imported `sitecustomize` from any entry of its path.
"""

import sys

del sys.path[0]  # Python has put the directory of this file here.


def run_module(module: str, settings: str, arguments: list[str]) -> None:
    """Run a module as the main program of this process."""
    import json
    import os
    import runpy
    import site

    start = json.loads(settings if settings.startswith("{") else bytes.fromhex(settings))
    customize = site.execsitecustomize

    def customize_safely() -> None:
        sys.path[:] = start["path"]
        customize()

    site.execsitecustomize = customize_safely
    site.main()
    os.environ.update(start["environment"])
    sys.argv[:] = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run_module(sys.argv[1], sys.argv[2], sys.argv[3:])
