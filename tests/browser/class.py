"""State folders of a class, as `mlbench lab` keeps and seals them: eight students, five labs; one's name tries to become a part of
the page, and one state was edited.  Numbers are such that all JSON writers write them alike."""
import base64
import hashlib
import json
import os
import sys

TITLES = ["The story", "Measuring at all", "The queue", "Workers, cores and the knee", "Latency or bandwidth"]
NAMES = ["anna", "ben", "chiara", "deniz", "elif", "farid", "greta",
         "</script><script>window.owned=1</script><img src=x onerror='window.owned=2'>\u202e"]


def prediction(begin, place, factor, hit):
    return {"at": begin + 60, "name": f"q{place}", "figure": "rate", "setting": {}, "value": 100 * factor, "low": 90, "high": 110,
            "word": None, "confidence": 0.75, "measured": 100.0, "factor": factor, "hit": hit}


def state(student, seat, number):
    begin = 1795690000.0 + 1000 * number
    name = "passed" if (seat + number) % 4 else "given-up" if seat % 2 else "measured"
    ended = None if name == "measured" else begin + 300 + 60 * number
    return {"schema": "mlbench.lab/1", "lab": number, "title": TITLES[number - 1], "student": student, "attempt": 1, "state": name,
            "started": begin, "ended": ended, "points": {"passed": 100 - 5 * seat, "given-up": 0}.get(name),
            "sealed": {"mine": "", "teacher": None},
            "predictions": [prediction(begin, place, 1 + 4 * (seat + place) // number / 8, place > 1) for place in range(4)],
            "measurements": [{"at": begin + 120, "number": 1, "setting": {}, "rate": 100.0, "folder": "m001"}],
            "hints": [{"at": begin + 150, "number": 1, "price": 5}] * (seat % 3),
            "checks": [{"at": begin + 280, "passed": name == "passed"}], "earlier": []}


KEY = bytes(range(32))
SECRET = base64.urlsafe_b64encode(KEY).decode().rstrip("=")
EDITED = 6, 2  # the seat and the lab


def seal(state):
    """The code of a state, as harness/lab/seal.c computes it."""
    key = hashlib.blake2b(b"mlbench.lab state", digest_size=32, key=KEY).digest()
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return {**state, "mac": hashlib.blake2b(text.encode(), digest_size=32, key=key).hexdigest()}


def main(folder):
    derived = hashlib.blake2b(b"mlbench.lab state", digest_size=32, key=KEY).digest()
    key = hashlib.blake2b(b"mlbench.lab key", digest_size=32, key=derived).hexdigest()[:32]
    keys = os.path.join(os.environ["XDG_STATE_HOME"], "mlbench", "labs")
    os.makedirs(keys)
    with open(os.path.join(keys, f"{key}.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "mlbench.lab_secret/1", "secret": SECRET, "count": 1}, file)
    for seat, student in enumerate(NAMES):
        place = os.path.join(folder, str(seat))
        os.makedirs(place)
        states = {f"{number:02}": seal(state(student, seat, number)) for number in range(1, 6 if seat % 3 else 4)}
        with open(os.path.join(place, "student.json"), "w", encoding="utf-8") as file:
            json.dump(seal({"schema": "mlbench.lab_student/2", "student": student, "key": key, "teacher": None, "count": 1,
                            "files": {name: [sealed["mac"]] for name, sealed in states.items()}}), file)
        for name, sealed in states.items():
            with open(os.path.join(place, f"{name}.json"), "w", encoding="utf-8") as file:
                json.dump({**sealed, **({"points": 99} if (seat, int(name)) == EDITED else {})}, file)


main(*sys.argv[1:])
