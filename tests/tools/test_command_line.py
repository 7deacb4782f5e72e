"""The command line as it is typed: misspelt names."""

import pytest

from evaluation.commands.parser import build_parser, parsers_of

PARSERS = parsers_of(build_parser())


@pytest.mark.parametrize("command", PARSERS)
def test_misspelt_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = (name for action in PARSERS[command]._actions for name in action.option_strings)
    for option in (name for name in names if len(name) > 4):
        typed = f"{option[:3]}x{option[3:]}"
        with pytest.raises(SystemExit, match="2"):
            build_parser().parse_args([command, typed])
        assert f"no option {typed} (did you mean --" in capsys.readouterr().err
