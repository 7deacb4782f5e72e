"""`view`: all questions and answers of a run in a browser on this machine."""

import argparse
import os
from pathlib import Path

from evaluation.commands import Commands, a_path, add_configured, whole_number
from evaluation.errors import ConfigError
from evaluation.settings import effective
from evaluation.settings.config import Config, load_config
from evaluation.settings.planning import plan_stages


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `view`."""
    command = add_configured(
        commands,
        _view,
        "show results in a browser: all pages, and every question, prompt and answer",
        epilog="Reads only, and answers only to this machine. From elsewhere: `ssh -L PORT:127.0.0.1:PORT "
        "HOST`.",
    )
    command.add_argument(
        "results", type=a_path, nargs="?", help="folder of all results; that of the configuration"
    )
    command.add_argument(
        "--port", type=whole_number(0), default=0, help="port on this machine; any that is free"
    )


def _view(options: argparse.Namespace) -> int:
    """Serve a folder of results until Ctrl-C."""
    from evaluation.dependencies.known_steps import with_known_steps
    from evaluation.reporting.viewer.server import Viewer, make_server

    config = _configuration(options)
    plans = plan_stages(with_known_steps(config))
    server, address = make_server(Viewer(Path(config.results), plans), options.port)
    print(
        f"{address} has the pages, {address}-/ all questions and answers; Ctrl-C ends it",
        flush=True,
    )
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0


def _configuration(options: argparse.Namespace) -> Config:
    """Return the configuration of the results that are named: the last one of a run, or `--config`."""
    if options.results is None:
        return load_config(options.config)
    folder = options.results / effective.FOLDER / str(os.getuid())
    stored = sorted(folder.glob("*.yaml"), key=lambda path: path.stat().st_mtime)
    config = load_config(stored[-1] if stored else options.config)
    if Path(config.results).resolve() != options.results.resolve():
        raise ConfigError(
            f"{options.results}: {stored[-1] if stored else options.config} is not the configuration of "
            f"these results, but of {config.results}; name theirs by --config, or leave the folder out"
        )
    return config
