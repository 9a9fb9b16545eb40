"""What people see while they wait: a line a job, how far it is, the answer at the end."""

import io
import logging
import shlex
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from rich.console import Console
from rich.progress import Progress
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_terminal as terminal
from projected_grpo.arguments import check_targets, report_file
from projected_grpo.errors import UserError
from projected_grpo.wrapper import entry


def handler_of(**settings):
    return terminal.LogHandler(
        SimpleNamespace(**{"stdout": False, "show_failed_logs": True, "dryrun": False} | settings), None
    )


@pytest.fixture
def handler():
    made = handler_of()
    yield made
    made.close()


def event(kind, **more):
    record = logging.LogRecord("snakemake", logging.INFO, "", 0, more.pop("msg", "text"), (), None)
    vars(record).update(event=kind, **more)
    return record


def test_a_job_is_a_line_when_it_is_done_and_snakemakes_chatter_is_none(handler, capsys, tmp_path):
    job = {
        "jobid": 3,
        "rule_name": "grpo",
        "wildcards": {"cell": "vanilla-s41"},
        "log": [str(tmp_path / "a.log")],
    }
    handler.emit(event(LogEvent.RUN_INFO, stats={"grpo": 2, "total": 2}))
    handler.emit(event(LogEvent.JOB_INFO, **job))
    handler.emit(event(LogEvent.SHELLCMD, msg="Shell command: None", shellcmd=None))
    handler.emit(event(None, msg="Building DAG of jobs..."))
    handler.emit(event(None, msg="3 jobs have missing provenance/metadata so that it in part cannot be used"))
    handler.emit(event(LogEvent.JOB_FINISHED, job_id=3))
    handler.emit(event(None, msg="something else [worth] saying"))
    assert capsys.readouterr().err.splitlines() == [
        "2 jobs: 2 grpo",
        "1/2 grpo vanilla-s41 done in 0 s",
        "something else [worth] saying",
    ]


def on_a_terminal(handler, width=80):
    handler.console = Console(
        file=io.StringIO(), force_terminal=True, width=width, highlight=False, no_color=True
    )
    handler.bars = Progress(
        "{task.description}", "{task.fields[at]}", console=handler.console, transient=True
    )


def test_bars_go_on_when_a_job_ended_while_its_log_was_read(handler, monkeypatch, tmp_path):
    """A bar that is gone must not end the thread that moves the others."""
    log = tmp_path / "a.log"
    log.write_text("3/9")
    on_a_terminal(handler)
    monkeypatch.setattr(terminal, "LOOK", 0.01)
    reached, seen = terminal.reached, []

    def slowly(path):
        if not seen:
            handler.emit(event(LogEvent.JOB_FINISHED, job_id=1))
        seen.append(path)
        return reached(path)

    monkeypatch.setattr(terminal, "reached", slowly)
    for number in (1, 2):
        handler.emit(event(LogEvent.JOB_INFO, jobid=number, rule_name="grpo", wildcards={}, log=[str(log)]))
    deadline = time.monotonic() + 10
    while len(seen) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(seen) >= 5 and handler.watch.is_alive()
    assert [task.completed for task in handler.bars.tasks] == [3]


def test_lines_on_a_terminal_break_between_words(handler):
    on_a_terminal(handler, 40)
    path = "results/grpo/a-cell-whose-name-is-longer-than-the-line/columns.parquet"
    text = f"words that are many enough to fill more than a line of forty, and {path} [x]"
    handler.emit(event(None, msg=text))
    lines = handler.console.file.getvalue().splitlines()
    assert " ".join(lines) == text and path in lines
    assert all(len(line) <= 40 for line in lines if line != path)


def test_a_failed_job_names_its_log_and_shows_its_end(handler, capsys, tmp_path):
    log = tmp_path / "a.log"
    log.write_text("\n".join(f"line {n}" for n in range(30)))
    job = {"jobid": 3, "rule_name": "base", "wildcards": {}, "log": [str(log)]}
    handler.emit(event(LogEvent.JOB_INFO, **job))
    handler.emit(event(LogEvent.JOB_ERROR, **job))
    said = capsys.readouterr().err
    assert "base FAILED in" in said and str(log) in said and "line 29" in said and "line 19" not in said


def test_a_job_that_the_user_stopped_has_not_failed(handler, capsys, tmp_path):
    log = tmp_path / "a.log"
    log.write_text("line 29\n")
    job = {"jobid": 3, "rule_name": "base", "wildcards": {}, "log": [str(log)]}
    handler.emit(event(LogEvent.JOB_INFO, **job))
    handler.emit(event(None, msg="Terminating processes on user request, this might take some time."))
    handler.emit(event(LogEvent.JOB_ERROR, **job))
    error = event(None, msg="RuleException: CalledProcessError in file base.smk, line 9:")
    error.levelname = "ERROR"
    handler.emit(error)
    assert capsys.readouterr().err.splitlines() == [
        "Terminating processes on user request, this might take some time.",
        "0/0 base stopped in 0 s",
    ]


def test_a_dry_run_is_a_line_a_rule_and_reason(capsys):
    handler = handler_of(dryrun=True)
    handler.emit(event(LogEvent.RUN_INFO, stats={"grpo": 4, "total": 4}))
    changed = "Updated input files: .snakemake/changed/code"
    for number, (cell, reason) in enumerate(
        [
            ("less-m0-s42", changed),
            ("less-m0-s41", changed),
            ("kl-m0-s41", "Missing output files: results/grpo/kl-m0-s41/run.json"),
            ("less-m0-s43", changed),
        ]
    ):
        more = {"wildcards": {"cell": cell}, "log": [], "reason": reason}
        handler.emit(event(LogEvent.JOB_INFO, jobid=number, rule_name="grpo", **more))
    handler.emit(event(LogEvent.RUN_INFO, stats={"grpo": 4, "total": 4}))
    handler.emit(event(None, msg="This was a dry-run (flag -n). The order of jobs does not reflect"))
    handler.close()
    assert capsys.readouterr().err.splitlines() == [
        "4 jobs: 4 grpo",
        "  3 grpo, its code changed: less-m0-s{41..43}",
        "  1 grpo, not there yet: kl-m0-s41",
    ]


def test_how_far_a_job_is_stands_in_its_log(tmp_path, monkeypatch):
    log = tmp_path / "a.log"
    assert terminal.reached(log) is None and terminal.reached(None) is None
    log.write_text("begins\nstep 1/20 hack 0.1\n" + "noise\n" * 2000 + "step 12/20 hack 0.5\nno step\n")
    assert terminal.reached(log) == (12, 20)
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    job = terminal.Job("x", log, 0.0)
    assert terminal.left(job, 2, 20) == "2/20"
    now[0] += 30
    assert terminal.left(job, 5, 20) == "5/20, 10.0 s each, 2 min left"
    # What counts anew, as the rounds of a critic do, has no rate yet, and never a negative one.
    assert terminal.left(job, 3, 20) == "3/20"
    now[0] += 4
    assert terminal.left(job, 5, 20) == "5/20, 2.0 s each, 30 s left"
    assert terminal.left(job, 6, 30) == "6/30"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(4.2, "4 s"), (89, "89 s"), (600, "10 min"), (3600, "60 min"), (11_100, "3 h 05 min")],
)
def test_times_are_said_as_people_say_them(seconds, said):
    assert terminal.duration(seconds) == said


PAGES = ["results/smoke/Q1.md", "results/smoke/Q10.md", "results/smoke/probe/uat.md", "reports/smoke.html"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Q10", "results/smoke/Q10.md"),
        ("Q10.md", "results/smoke/Q10.md"),
        ("results/Q1O.md", "results/smoke/Q10.md"),
        ("results/Q10.md", "results/smoke/Q10.md"),
        ("reports/smoke.htm", "reports/smoke.html"),
    ],
)
def test_a_target_that_nothing_makes_is_one_line_with_the_page_that_is_meant(typed, meant):
    with pytest.raises(UserError, match=f"^{typed}: nothing makes this file; did you mean {meant}\\?$"):
        check_targets(["made", typed], lambda target: target == "made", PAGES, [], dict)


def test_a_target_that_is_nearly_a_rule_or_belongs_to_another_config_says_so():
    def check(target):
        check_targets(
            [target], lambda _: False, PAGES, ["all", "report"], lambda: {"results/demo": "config/demo.yaml"}
        )

    with pytest.raises(UserError, match=r"^reprot: nothing makes this file; did you mean report\?$"):
        check("reprot")
    for target in ("reports/demo.html", "results/demo/Q10.md"):
        said = rf"^{target}: nothing makes this file under this config; did you mean --configfile config/demo.yaml\?$"
        with pytest.raises(UserError, match=said):
            check(target)


def test_every_results_folder_has_a_report_of_its_own():
    assert report_file("results") == "reports/paper.html"
    assert report_file("results/smoke") == report_file(f"{Path.cwd()}/results/smoke") == "reports/smoke.html"
    folders = ["results", "results/smoke", "results/a/smoke", "results/paper"]
    folders += ["smoke", "a/smoke", "/a/smoke", "paper"]
    assert len({report_file(folder) for folder in folders}) == len(folders)


@pytest.fixture
def start(tmp_path, monkeypatch):
    """The entry with a temporary folder of the test's."""
    monkeypatch.setattr(entry, "TEMPORARY", tmp_path)
    return entry


def execute(job, cmd, **more):
    """As Snakemake does: names in braces are filled in, quoted where `:q` says so."""
    subprocess.run(cmd.replace("{printed:q}", shlex.quote(more["printed"])), shell=True, check=True)


def test_what_a_job_prints_is_at_the_end_of_its_log_and_shown_where_it_failed(start, tmp_path, capfd):
    log = tmp_path / "a.log"
    log.write_text("12/20\n")
    job = SimpleNamespace(log=[str(log)])
    start.quiet(execute)(job, "sh -c 'echo bar; echo FutureWarning >&2'")
    assert log.read_text() == "12/20\n--- printed by the job ---\nbar\nFutureWarning\n"
    assert capfd.readouterr().err == "" and list(tmp_path.iterdir()) == [log]
    with pytest.raises(subprocess.CalledProcessError):
        start.quiet(execute)(job, "sh -c 'echo error: no such file >&2; exit 3'")
    assert capfd.readouterr().err == "error: no such file\n" and log.read_text().endswith("no such file\n")
    with pytest.raises(subprocess.CalledProcessError):
        start.quiet(execute)(job, "sh -c 'echo Traceback >&2; kill -INT $$'")
    assert capfd.readouterr().err == "" and log.read_text().endswith("Traceback\n")


def test_a_call_ends_with_three_means_the_caution_and_the_path(start, tmp_path, capsys):
    rows = [
        (row, "rate", "", measure, mean, None, 2, None)
        for row, hack, honest in (
            ("vanilla", 0.65, 0.13),
            ("a", 0.4, 0.2),
            ("b", 0.003, 0.5),
            ("c", 0.1, 0.1),
        )
        for measure, mean in (("hack", hack), ("solve", 0.9), ("honest", honest))
    ]
    rows.append(("b", "baseline", "vanilla", "hack", 0.003, -0.647, 2, 0.01))  # the one claim
    columns = ["row", "contrast", "to", "measure", "mean", "delta", "n", "p_holm"]
    frame = pd.DataFrame(rows, columns=columns).astype({"delta": float})
    frame.to_parquet(tmp_path / "Q10.estimates.parquet")
    for name in ("Q10.md", "uat.md"):
        (tmp_path / name).write_text("")
    (tmp_path / "figures/Q10").mkdir(parents=True)
    start.answers([str(tmp_path / "Q10.md"), str(tmp_path / "uat.md")], 61)
    assert capsys.readouterr().err.splitlines() == [
        "",
        "vanilla: hack 65%, honest 13%",
        "b: hack 0.3% (-65 points), honest 50%",
        "a: hack 40%, honest 20%",
        "2 seeds: a look. Claims are made at 10.",
        f"{tmp_path}/Q10.md, figures in {tmp_path}/figures/Q10",
        "",
        f"{tmp_path}/uat.md",
        "made in 0:01:01",
    ]
