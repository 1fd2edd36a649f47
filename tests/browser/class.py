"""State folders of a class, as `mlbench lab` keeps them: eight students, five labs; one's name tries to become a part of the page."""
import json
import os
import sys

TITLES = ["The story", "Measuring at all", "The queue", "Workers, cores and the knee", "Latency or bandwidth"]
NAMES = ["anna", "ben", "chiara", "deniz", "elif", "farid", "greta",
         "</script><script>window.owned=1</script><img src=x onerror='window.owned=2'>\u202e"]


def prediction(begin, place, factor, hit):
    return {"at": begin + 60, "name": f"q{place}", "figure": "rate", "setting": {}, "value": 100 * factor, "low": 90, "high": 110,
            "word": None, "confidence": 0.7, "measured": 100.0, "factor": factor, "hit": hit}


def state(student, seat, number):
    begin = 1795690000.0 + 1000 * number
    name = "passed" if (seat + number) % 4 else "given-up" if seat % 2 else "measured"
    ended = None if name == "measured" else begin + 300 + 60 * number
    return {"schema": "mlbench.lab/1", "lab": number, "title": TITLES[number - 1], "student": student, "attempt": 1, "state": name,
            "started": begin, "ended": ended, "points": {"passed": 100 - 5 * seat, "given-up": 0}.get(name),
            "sealed": {"mine": "", "teacher": None},
            "predictions": [prediction(begin, place, 1 + (seat + place) / (2 * number), place > 1) for place in range(4)],
            "measurements": [{"at": begin + 120, "number": 1, "setting": {}, "rate": 100.0, "folder": "m001"}],
            "hints": [{"at": begin + 150, "number": 1, "price": 5}] * (seat % 3),
            "checks": [{"at": begin + 280, "passed": name == "passed"}], "earlier": []}


def main(folder):
    for seat, student in enumerate(NAMES):
        place = os.path.join(folder, str(seat))
        os.makedirs(place)
        with open(os.path.join(place, "student.json"), "w", encoding="utf-8") as file:
            json.dump({"student": student}, file)
        for number in range(1, 6 if seat % 3 else 4):
            with open(os.path.join(place, f"{number:02}.json"), "w", encoding="utf-8") as file:
                json.dump(state(student, seat, number), file)


main(*sys.argv[1:])
