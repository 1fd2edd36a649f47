"""Driving mlbench: runs, what they measured, and a diagnosis by one that has not seen what was planted."""

import hashlib
import json
import os
import shutil
import subprocess
from typing import Callable, Dict, List, Optional, Tuple

Settings = Dict[str, str]

WRONG_INPUT = 2
NOT_STEADY = 3  # a complete run all the same
INJECTED = "injected:"


class Failed(Exception):
    """This case cannot be scored."""


class Mistake(Exception):
    """The bank itself is wrong: no case can be."""


class Runner:
    def __init__(self, program: str, data: str, work: str):
        self.program = os.path.abspath(program)
        self.data = os.path.abspath(data)
        self.work = os.path.abspath(work)
        self.count = 0
        self.enter: Optional[Callable[[], None]] = None  # what the program's process does before it begins
        self.diagnoses = self.has_diagnose()
        os.makedirs(self.work, exist_ok=True)
        os.makedirs(self.data, exist_ok=True)
        self.config = os.path.join(self.work, "bank.ini")
        with open(self.config, "w") as file:
            file.write("# everything is set on the command line\n[run]\nname = bank\n")
        self.defaults = self.read_defaults()

    def call(self, arguments: List[str], cores: Optional[int] = None, timeout: float = 300) -> subprocess.CompletedProcess:
        enter = self.enter

        def restrict() -> None:
            if enter:
                enter()
            if cores:
                os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])

        try:
            return subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=timeout,
                                  preexec_fn=restrict if cores or enter else None)
        except subprocess.TimeoutExpired as expired:
            raise Failed("mlbench %s: no answer within %.0f s" % (arguments[0], timeout)) from expired

    def has_diagnose(self) -> bool:
        return self.call(["help", "diagnose"]).returncode == 0

    def read_defaults(self) -> Dict[str, Dict[str, object]]:
        """The section inject without any plant, as text and as JSON."""
        folder = os.path.join(self.work, "plain")
        self.measure({"dataset.recipe": "photo", "dataset.format": "raw", "dataset.width": "16", "dataset.height": "16",
                      "dataset.samples": "16", "augment.size": "16", "batch.size": "4", "step.backend": "null",
                      "measure.warmup": "0s", "measure.duration": "50ms", "measure.window": "10ms", "measure.repeats": "1",
                      "measure.limits": "off"}, folder)
        with open(os.path.join(folder, "points.jsonl")) as file:
            header = json.loads(file.readline())
        shutil.rmtree(folder)
        return {"text": inject_section(header["resolved"]), "json": header["config"]["inject"]}

    def folder_of(self, settings: Settings) -> str:
        recipe = sorted((key, value) for key, value in settings.items() if key.startswith("dataset."))
        digest = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:8]
        return os.path.join(self.data, "%s-%s" % (settings["dataset.format"], digest))

    def arguments(self, settings: Settings, folder: str) -> List[str]:
        arguments = ["run", self.config, "--quiet", "--out", folder, "--set", "dataset.path=" + self.folder_of(settings)]
        for key, value in settings.items():
            arguments += ["--set", "%s=%s" % (key, value)]
        return arguments

    def measure(self, settings: Settings, folder: Optional[str] = None, cores: Optional[int] = None) -> dict:
        """Runs one point; its last repetition, with 'folder' and 'header'."""
        self.count += 1
        folder = folder or os.path.join(self.work, "run-%04d" % self.count)
        shutil.rmtree(folder, ignore_errors=True)
        done = self.call(self.arguments(settings, folder), cores)
        if done.returncode == WRONG_INPUT:
            raise Mistake("mlbench run: %s" % done.stderr.strip()[-400:])
        if done.returncode not in (0, NOT_STEADY):
            raise Failed("mlbench run: exit status %d: %s" % (done.returncode, done.stderr.strip()[-400:]))
        header, repetitions = read_points(folder)
        if not repetitions or not repetitions[-1].get("throughput"):
            raise Failed("mlbench run: nothing was measured: %s" % (repetitions[-1]["error"] if repetitions else done.stderr[-400:]))
        return {**repetitions[-1], "folder": folder, "header": header}

    def diagnose(self, folder: str) -> dict:
        """The verdict on a saved result, from a copy without labels."""
        blind = folder + "-blind"
        self.copy_blind(folder, blind)
        try:
            return self.ask(blind)
        finally:
            shutil.rmtree(blind, ignore_errors=True)

    def ask(self, folder: str) -> dict:
        command = ["diagnose", "--json", folder] if self.diagnoses else ["show", "--json", folder]
        done = self.call(command)
        if done.returncode not in (0, NOT_STEADY):
            raise Failed("mlbench %s: exit status %d: %s" % (command[0], done.returncode, done.stderr.strip()[-400:]))
        document = json.loads(done.stdout)
        if self.diagnoses:
            return read_diagnosis(document, done.returncode == NOT_STEADY)
        return read_shown(document)

    def copy_blind(self, folder: str, blind: str) -> None:
        """What the diagnoser sees: measurements, traces and every key that is no plant."""
        shutil.rmtree(blind, ignore_errors=True)
        shutil.copytree(folder, blind)
        for derived in ("summary.json", "points.csv", "report.html"):
            if os.path.exists(os.path.join(blind, derived)):
                os.remove(os.path.join(blind, derived))
        path = os.path.join(blind, "points.jsonl")
        with open(path) as file:
            lines = [json.loads(line) for line in file if line.strip()]
        lines[0] = self.blind_header(lines[0])
        for line in lines[1:]:
            line["notes"] = [note for note in line.get("notes", []) if not note.startswith(INJECTED)]
        with open(path, "w") as file:
            for line in lines:
                file.write(json.dumps(line) + "\n")
        check_blind(blind)

    def blind_header(self, header: dict) -> dict:
        header = json.loads(json.dumps(header))
        resolved = header["resolved"]
        header["resolved"] = resolved.replace(inject_section(resolved), str(self.defaults["text"]))
        header["config"]["inject"] = self.defaults["json"]
        header.pop("command", None)  # it has every --set
        return header


def read_points(folder: str) -> Tuple[dict, List[dict]]:
    """The header of a result, and its repetitions."""
    with open(os.path.join(folder, "points.jsonl")) as file:
        lines = [json.loads(line) for line in file if line.strip()]
    return lines[0], [line for line in lines if line.get("kind") == "repetition"]


def inject_section(resolved: str) -> str:
    begin = resolved.index("[inject]")
    end = resolved.find("\n[", begin)
    return resolved[begin:] if end < 0 else resolved[begin:end]


def check_blind(folder: str) -> None:
    """A label that slips through would make the score worthless."""
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), errors="replace") as file:
                if INJECTED in file.read():
                    raise Mistake("a label is left in %s" % os.path.join(root, name))


def read_diagnosis(document: dict, abstained: bool) -> dict:
    verdict = document["verdict"]
    memory = document.get("memory") or {}
    return {
        "stage": verdict["stage"],
        "resource": verdict["resource"],
        "confidence": verdict["confidence"] or 0.0,
        "also": verdict.get("also"),
        "abstained": abstained or verdict["stage"] in ("none", ""),
        "reason": document.get("cannot_tell"),
        "leaks": bool(memory.get("leaks")),
        "leak_stage": memory.get("stage"),
        "phases": document.get("phases") or [],
        "recommendations": document.get("recommendations") or [],
        "evidence": verdict.get("evidence") or [],
        "elasticity_sum": document.get("elasticity_sum"),
        "not_modelled": document.get("not_modelled"),
        "replayed": document.get("replayed"),
    }


def read_shown(document: dict) -> dict:
    """mlbench show, from before there was a diagnosis: wait states and resource rules alone."""
    verdict = document["points"][0]["verdict"] or {}
    stage = verdict.get("stage") or "none"
    return {
        "stage": stage,
        "resource": verdict.get("resource") or "unknown",
        "confidence": verdict.get("confidence") or 0.0,
        "also": verdict.get("also"),
        "abstained": stage == "none",
        "reason": None,
        "leaks": False,
        "leak_stage": None,
        "phases": [],
        "recommendations": [],
        "evidence": verdict.get("evidence") or [],
        "elasticity_sum": None,
        "not_modelled": None,
        "replayed": None,
    }
