"""Draws charts in headless Chromium as a reader's browser does, at a desk's and a phone's width, and says of each chart how
many marks it has.  A fault is what the console says, a chart without marks, a mark without a place or a colour, an
entry of a legend that no mark belongs to, and an axis without labels.

  charts.py VEGA REPORT.html|CHART.vl.json...

A .vl.json is drawn with its own rows, compiled as it stands beside it."""
import json
import os
import sys
import tempfile
import time
import urllib.parse

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

GUARD_S = 300
WIDTHS = (1000, 300)
HTML = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../harness/report/html")

# What is wrong with each chart, but for those of points that nobody opened: [[id, marks, [fault, ...]], ...]
CHECK = """return [...document.querySelectorAll('.plot')].filter(plot => !plot.closest('.point:not([open])')).map(plot => {
    const faults = [], said = new Set();
    let marks = 0, lost = 0, inkless = 0;
    const walk = (item, visit) => item.marktype && item.marktype !== 'group' ? item.role === 'mark' && item.items.forEach(visit)
        : (item.items || []).forEach(one => walk(one, visit));
    const entries = (item, found) => {
        if (item.role === 'legend-symbol') item.items.forEach(one => found.push(one.datum.value));
        (item.items || []).forEach(one => entries(one, found));
        return found;
    };
    // A title without numbers: a logarithmic axis within a decade had none.
    const axes = item => {
        const has = role => (item.items || []).flatMap(one => one.items || []).filter(one => one.role === role).flatMap(one => one.items);
        if (item.role === 'axis' && has('axis-title').some(one => one.text) && has('axis-label').length === 0) faults.push('an axis has no labels');
        (item.items || []).forEach(axes);
    };
    for (const view of plot.views || []) {
        const root = view.scenegraph().root;
        walk(root, one => {
            marks += one.opacity !== 0;
            lost += Number.isNaN(one.x) || Number.isNaN(one.y);
            inkless += !one.fill && !one.stroke;
            for (const value of Object.values(one.datum || {})) if (one.fill || one.stroke) said.add(String(value));
        });
        axes(root);
        for (const entry of entries(root, [])) if (!said.has(String(entry))) faults.push(`its legend names "${entry}", and no mark is of it`);
    }
    if (!plot.classList.contains('drawn')) faults.push('not drawn: ' + plot.textContent);
    if (marks === 0) faults.push('draws nothing');
    if (lost) faults.push(lost + ' marks have no place');
    if (inkless) faults.push(inkless + ' marks have no colour');
    return [plot.closest('figure').id, marks, faults];
})"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def samples(chart, found):
    """The rows of every named data set of a source."""
    if isinstance(chart, dict):
        data = chart.get("data")
        if isinstance(data, dict) and "name" in data and "values" in data:
            found[data["name"]] = data["values"]
    for value in chart.values() if isinstance(chart, dict) else chart if isinstance(chart, list) else ():
        samples(value, found)
    return found


def page_of(vega, sources):
    figures = ""
    for source in sources:
        name = os.path.basename(source)[:-len(".vl.json")]
        drawing = {"title": name, "file": name, "signals": {}, "data": samples(json.loads(read(source)), {}), "drop": [], "panels": [],
                   "choices": [], "columns": {}}
        compiled = read(source.replace(".vl.json", ".vg.json"))
        figures += (f"<figure id={name}><div class=choices></div><div class=plot></div><script type='application/json'>{json.dumps(drawing)}"
                    f"</script><script type='application/json' data-chart={name}>{compiled}</script></figure>")
    return (f"<!DOCTYPE html><meta charset=utf-8><style>{read(HTML + '/page.css')}</style><body><main>{figures}</main>"
            f"<script>{read(vega)}</script><script>{read(HTML + '/page.js')}</script>")


def start():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                     "--disable-background-networking"):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.set_page_load_timeout(GUARD_S)
    return driver


def draw(driver, path, width):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    driver.get("about:blank")
    driver.get("file://" + urllib.parse.quote(os.path.abspath(path)))
    until = time.time() + GUARD_S
    while time.time() < until and driver.execute_script("return document.documentElement.dataset.charts") != "drawn":
        time.sleep(0.02)
    said = [entry["message"] for entry in driver.get_log("browser")]
    return driver.execute_script(CHECK), said


def main(vega, files):
    faults = 0
    driver = start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            sources = [file for file in files if file.endswith(".vl.json")]
            pages = [(file, file) for file in files if file not in sources]
            if sources:
                pages.insert(0, ("samples", os.path.join(folder, "samples.html")))
                with open(pages[0][1], "w", encoding="utf-8") as out:
                    out.write(page_of(vega, sources))
            for name, path in pages:
                for width in WIDTHS:
                    charts, said = draw(driver, path, width)
                    for chart, marks, wrong in charts:
                        print(f"{name}: {chart}, {width} wide: {marks} marks" + "".join("\n  " + one for one in wrong))
                        faults += len(wrong)
                    for line in said if charts else ["no charts"]:
                        print(f"{name}: {line}")
                        faults += 1
    finally:
        driver.quit()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
