"""The command line as a user meets it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import fastvec
from fastvec import bench
from fastvec.cli import main
from fastvec.contenders import CONTENDERS


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--env", "CartPol-v1"], "'CartPol-v1'.*did you mean CartPole-v1"),
        (["--n", "0"], "--n: '0' given, expected a whole number from 1 up"),
        (["--n", "1,x"], "--n: 'x' given, expected a whole number from 1 up"),
        (["--n", ""], "--n: '' given"),
        (["--only", "fastvec,nobody"], "--only: 'nobody' given, expected some of fastvec, .*sync, async"),
        (["--seconds", "-1"], "--seconds: '-1' given, expected a number of seconds above 0"),
        (["--seconds", "nan"], "--seconds: 'nan' given"),
        (["--seconds", "soon"], "--seconds: 'soon' given"),
        (["--rounds", "0"], "--rounds: '0' given"),
        (["--json", "no/such/directory/file.json"], "'no/such/directory/file.json' cannot be written"),
        (["--json", "."], "'.' cannot be written"),
    ],
)
def test_bad_arguments_get_one_sentence_and_exit_code_2(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["bench", *arguments])
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert re.search(sentence, printed.err)


def test_unknown_command_is_a_bad_argument(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["race"])
    assert stopped.value.code == 2
    assert "'race'" in capsys.readouterr().err


def test_no_command_shows_the_commands(capsys):
    assert main([]) == 2
    assert "bench" in capsys.readouterr().err


@pytest.mark.parametrize("rich", ["if installed", "missing"])
def test_table_and_json_agree(rich, tmp_path, monkeypatch, capsys):
    if rich == "missing":
        monkeypatch.setitem(sys.modules, "rich", None)
    file = tmp_path / "bench.json"
    arguments = ["--n", "1,3", "--only", "fastvec,sync", "--seconds", "0.02", "--rounds", "2", "--json", str(file)]
    assert main(["bench", *arguments]) == 0
    table = capsys.readouterr().out
    read = json.loads(file.read_text())

    assert read["machine"]["fastvec"] == fastvec.__version__
    assert {"cpu", "cores", "python", "numpy", "gymnasium"} <= read["machine"].keys()
    assert read["settings"]["n"] == [1, 3]
    assert [(entry["n"], entry["contender"]) for entry in read["results"]] == [
        (1, "fastvec"),
        (1, "sync"),
        (3, "fastvec"),
        (3, "sync"),
    ]
    for entry in read["results"]:
        sps = entry["sps"]
        assert len(sps["samples"]) == 2
        assert min(sps["samples"]) <= sps["low"] <= sps["median"] <= sps["high"] <= max(sps["samples"])
        texts = [entry["title"], *(bench.in_words(sps[key]).strip() for key in ("median", "low", "high"))]
        assert any(all(text in line for text in texts) for line in table.splitlines()), (texts, table)


def test_absent_contenders_are_listed(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(CONTENDERS["envpool"], "module", "a_module_that_is_not_there", raising=False)
    file = tmp_path / "bench.json"
    arguments = ["--n", "9", "--only", "envpool,async,fastvec", "--seconds", "0.01", "--rounds", "1"]
    assert main(["bench", *arguments, "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"EnvPool +- +not installed", printed)
    assert re.search(r"Gymnasium Async +- +up to n = 8", printed)
    assert "pip install envpool" in printed
    absent = {entry["contender"]: entry.get("absent") for entry in json.loads(file.read_text())["results"]}
    assert absent == {"envpool": "not installed", "async": "up to n = 8", "fastvec": None}


def test_a_busy_machine_is_mentioned():
    assert bench.notes({"load_average": 0.9, "cores": 2}, []) == []
    [note] = bench.notes({"load_average": 3.96, "cores": 2}, [])
    assert "load average 4.0" in note


@pytest.mark.parametrize(
    ("sps", "text"),
    [(12.3, "12.3"), (999.4, "999"), (999.9, "1.00 k"), (71_400, "71.4 k"), (2_917_000, "2.92 M"), (1.5e9, "1.50 G")],
)
def test_rates_have_three_digits(sps, text):
    assert bench.in_words(sps).strip() == text


def test_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "fastvec", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"fastvec {fastvec.__version__}\n"


def test_importing_fastvec_imports_none_of_this():
    code = (
        "import sys, fastvec; "
        "print([name for name in sys.modules if name in "
        "('fastvec.cli', 'fastvec.bench', 'fastvec.measure', 'fastvec.contenders', 'fastvec.terminal', 'rich')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def group_exists(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_ends_everything_without_tracebacks():
    """A terminal sends SIGINT to the whole process group: to the workers too."""
    code = (
        "import sys; sys.modules['rich'] = None; "
        "from fastvec.cli import main; "
        "sys.exit(main(['bench', '--n', '4', '--only', 'fastvec,async', '--seconds', '500', '--rounds', '5000']))"
    )
    command = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert command.stderr.readline() == "CartPole-v1, n = 4\n"
        time.sleep(1.5)
        os.killpg(command.pid, signal.SIGINT)
        out, err = command.communicate(timeout=60)
        assert command.returncode == 130
        assert "interrupted" in err
        assert "Traceback" not in err + out
        deadline = time.monotonic() + 60
        while group_exists(command.pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        command.kill()


@pytest.mark.parametrize("command", [["bench"], ["profile", "CartPole-v1"]])
def test_one_file_for_two_forms_is_refused(command, tmp_path, capsys):
    path = str(tmp_path / "both")
    with pytest.raises(SystemExit) as caught:
        main([*command, "--json", path, "--html", path])
    assert caught.value.code == 2
    assert "give each a file of its own" in capsys.readouterr().err
