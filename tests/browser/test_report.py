"""Opens pages in headless Chromium without a network and asserts what a reader gets.  Prints a line per check that
failed and, at the end, "browser: N passed, N failed, 0 skipped"."""
import base64
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import charts as drawn_charts

WORK, PICTURES = sys.argv[1:3]
GUARD_S = 300  # seconds: against what hangs; how fast pages draw is bench_report's
WIDE, PHONE = (1280, 900), (390, 844)
failures = []
passed = 0


def check(holds, what):
    global passed
    if holds:
        passed += 1
    else:
        failures.append(what)
        print("FAILED:", what)


def start():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--no-first-run"):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.set_page_load_timeout(GUARD_S)
    driver.set_script_timeout(GUARD_S)
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.emulateNetworkConditions",
                           {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0})
    return driver


driver = start()


def size(width, height):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})


def scheme(name):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})


def js(code, *arguments):
    return driver.execute_script("return " + code, *arguments)


def comes(condition):
    """Whether it does, however slow the machine is."""
    until = time.time() + GUARD_S
    while time.time() < until:
        if condition():
            return True
        time.sleep(0.05)
    return False


FOLDED = "document.querySelectorAll('details.more:not([open])').length"


def open_page(folder, unfold=True, anchor=""):
    path = os.path.join(WORK, folder, "report.html")
    driver.get("about:blank")  # an anchor alone loads nothing
    driver.get("file://" + urllib.parse.quote(path) + anchor)
    comes(lambda: js("document.documentElement.dataset.charts") == "drawn")
    if unfold:
        js("document.querySelectorAll('details.more').forEach(section => { section.open = true; })")
    return path


def messages():
    """What the console said since it was asked last."""
    return [entry["message"] for entry in driver.get_log("browser")]


def requests():
    """Addresses that were asked for, other than files and data."""
    out = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            url = message["params"].get("request", message["params"]).get("url", "")
            if not url.startswith(("file:", "data:", "about:", "blob:", "chrome:")):
                out.append(url)
    return out


def picture(name, width):
    """The whole page; heights beyond what a picture can hold are cut."""
    js("document.activeElement.blur()")
    size(width, 800)
    time.sleep(0.6)
    size(width, min(js("document.documentElement.scrollHeight"), 14000))
    time.sleep(0.3)
    driver.save_screenshot(os.path.join(PICTURES, name + ".png"))


MARKS = """[...document.querySelectorAll("figure.chart")].filter(figure => !figure.closest(".point:not([open])")).map(figure => {
    const plot = figure.querySelector(".plot"), none = figure.querySelector(".none");
    const svg = plot && plot.querySelector("svg"), box = svg && svg.getBoundingClientRect();
    const marks = plot ? [...plot.querySelectorAll("g.mark-rect path, g.mark-symbol path, g.mark-line path, g.mark-rule line, g.mark-area path, g.mark-text text")]
        .filter(mark => mark.getBoundingClientRect().width + mark.getBoundingClientRect().height > 0) : [];
    return {id: figure.id, why: none && none.textContent, drawn: !!plot && plot.classList.contains("drawn"),
        width: box ? box.width : 0, height: box ? box.height : 0, marks: marks.length,
        title: figure.querySelector("figcaption h2, figcaption h3").textContent,
        named: !!plot && plot.getAttribute("role") === "img" && !!document.getElementById(plot.getAttribute("aria-labelledby")),
        wide: box ? Math.round(box.right - document.documentElement.clientWidth) : 0};
})"""


def check_charts(page, least):
    charts = js(MARKS)
    drawn = [chart for chart in charts if not chart["why"]]
    check(len(drawn) >= least, f"{page}: {len(drawn)} charts of at least {least}")
    for chart in charts:
        if chart["why"] is not None:
            check(len(chart["why"]) > 20, f"{page}: {chart['id']} is not drawn and does not say why")
            continue
        check(chart["drawn"], f"{page}: {chart['id']} was not drawn")
        check(chart["width"] > 200 and chart["height"] > 40, f"{page}: {chart['id']} is {chart['width']} x {chart['height']}")
        check(chart["marks"] > 3, f"{page}: {chart['id']} has {chart['marks']} marks")
        check(chart["named"], f"{page}: {chart['id']} has no name for a screen reader")
        check(chart["wide"] <= 1, f"{page}: {chart['id']} is {chart['wide']} pixels wider than the page")
    for chart, _, faults in driver.execute_script(drawn_charts.CHECK):
        check(not faults, f"{page}: {chart}: {faults}")
    return charts


def check_quiet(page):
    said = messages()
    check(not said, f"{page}: the console says {said[:3]}")
    asked = requests()
    check(not asked, f"{page}: it asked for {asked[:3]}")
    for bad in ("undefined", "NaN", "Infinity", "[object"):
        # a word of its own: in text that the page shows
        found = [text for text in js("[...document.querySelectorAll('main, main svg text')].map(e => e.tagName === 'MAIN' ? e.innerText : e.textContent)")
                 if re.search(r"(?<![\w.])" + re.escape(bad) + r"(?![\w])", text)]
        check(not found, f"{page}: it shows '{bad}'")


# --- what is drawn ----------------------------------------------------------------------------------

def map_texts():
    return js("[...document.querySelectorAll('#map g.mark-text text')].map(e => e.textContent)")


def test_drawn():
    size(*WIDE)
    scheme("light")
    open_page("plain")
    check_charts("plain", 4)
    check_quiet("plain")
    check(len(js("document.querySelector('.lead').textContent")) > 20, "plain: no verdict on top")


def test_folds():
    open_page("plain", unfold=False)
    sections = js("document.querySelectorAll('details.more').length")
    check(sections >= 6, f"folds: {sections} sections are folded away")
    check(js(FOLDED) == sections, "folds: a section is open before anyone opened it")
    order = js("[...document.querySelectorAll('main > [id], main > details > summary > h2')].map(e => e.id || e.textContent)")
    first = [item for item in order if item in ("advice", "stages", "ladder", "evidence", "map")]
    check(first == ["advice", "stages", "ladder", "evidence", "map"], f"folds: the page's order is {order}")
    check(order.index("map") < order.index("Scaling"), f"folds: the page's order is {order}")
    js("document.querySelector('nav a[href=\"#latency\"]').click()")
    check(comes(lambda: js("document.querySelector('#latency').closest('details').open")), "folds: a link into a section does not open it")
    check(js("document.querySelector('#latency .plot svg').getBoundingClientRect().width") > 600, "folds: a chart is not drawn for the page's width")
    check(js(FOLDED) == sections - 1, "folds: a link opened other sections, too")
    open_page("plain", unfold=False, anchor="#scaling")
    check(js("document.querySelector('#scaling').closest('details').open"), "folds: an address into a section does not open it")
    js("window.addEventListener('beforeprint', () => { window.printed = " + FOLDED + "; })")
    driver.execute_cdp_cmd("Page.printToPDF", {})
    check(js("window.printed") == 0, f"folds: {js('window.printed')} sections are not on paper")
    check(js(FOLDED) == sections - 1, "folds: printing left sections open")


def test_slider():
    open_page("plain")
    slider = driver.find_element(By.CSS_SELECTOR, "#map .choices input")
    before, said = map_texts(), js("document.querySelector('#map output').textContent")
    check(len([text for text in before if text]) >= 6, f"slider: the map shows {before}")
    driver.execute_script("arguments[0].focus()", slider)
    slider.send_keys(Keys.ARROW_LEFT if said == "2" else Keys.ARROW_RIGHT)
    check(comes(lambda: map_texts() != before), "slider: the marks did not change")
    check(js("document.querySelector('#map output').textContent") != said, "slider: its text did not change")
    check(slider.get_attribute("aria-valuetext") == js("document.querySelector('#map output').textContent"),
          "slider: a screen reader hears another value")
    slider.send_keys(Keys.ARROW_RIGHT if said == "2" else Keys.ARROW_LEFT)
    check(comes(lambda: map_texts() == before), "slider: moved back, the marks are not as before")


def rows_of(selector):
    return js("""(table => {
        const heads = [...table.querySelectorAll("thead th")].map(e => e.textContent);
        return [...table.querySelectorAll("tbody tr")].map(tr => Object.fromEntries([...tr.cells].map((td, i) => [heads[i], td.textContent])));
    })(document.querySelector(arguments[0]))""", selector)


CLICKED = "document.querySelector('details.point[open]')"


def test_click():
    """A click on a cell or a bar opens its point, with its stages and its time line; "back" leads to the mark again."""
    open_page("plain", unfold=False)
    size(*WIDE)
    summary = json.load(open(os.path.join(WORK, "plain", "summary.json"), encoding="utf-8"))
    measured = [point for point in summary["points"] if point["throughput"]["median"] is not None]
    check(js("document.querySelectorAll('details.point').length") == len(summary["points"]), "click: not every point has a section")
    check(js("document.querySelectorAll('details.point .plot.drawn').length") == 0, "click: time lines are drawn before anyone asks")
    for figure, mark in (("map", 4), ("stages", 20)):
        shape = driver.find_elements(By.CSS_SELECTOR, f"#{figure} g.mark-rect.role-mark path")[mark]
        driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", shape)
        webdriver.ActionChains(driver).move_to_element(shape).click().perform()
        check(comes(lambda: js(f"!!{CLICKED} && {CLICKED}.querySelectorAll('.plot.drawn').length === 1")), f"click: a mark of {figure} opens nothing")
        tip = js("[...document.querySelectorAll('#tip span')].map(part => part.textContent)")
        settings = next((text for text in tip if "decode.workers=" in text), "")
        number = js(f"{CLICKED}.id.replace('point-', '')")
        head = js(f"{CLICKED}.querySelector('h3').textContent")
        check(settings and head == f"Point {number}: {settings}", f"click: {figure} opens {head!r} for a mark that says {settings!r}")
        stages = [stage["name"] for stage in summary["points"][int(number)]["stages"]]
        check(js(f"[...{CLICKED}.querySelectorAll('table')[0].tBodies[0].rows].map(row => row.cells[0].textContent)") == stages,
              f"click: the point's stages are not {stages}")
        box = js(f"(box => [box.top, innerHeight - box.top])({CLICKED}.querySelector('summary').getBoundingClientRect())")
        check(min(box) >= 0, f"click: the point that {figure} opens is not on the screen")
        check(js("document.querySelectorAll('details.point[open]').length") == 1, "click: it opens other points, too")
        picture(f"point-{figure}", WIDE[0])
        size(*WIDE)
        js("history.back()")
        check(comes(lambda: js("location.hash") == ""), f"click: no way back to {figure}")
        js(f"{CLICKED}.open = false")
    # The table's numbers lead there, too: for a keyboard.
    js("document.querySelector('#map details.behind').open = true")
    link = driver.find_element(By.CSS_SELECTOR, f"#map td a[href='#point-{measured[-1]['id']}']")
    link.send_keys(Keys.ENTER)
    check(comes(lambda: js(f"!!{CLICKED}") and js(f"{CLICKED}.id") == f"point-{measured[-1]['id']}"), "click: a link of the table opens nothing")
    for name in ("light", "dark"):
        scheme(name)
        low = js(CONTRAST)
        check(not low, f"click, {name}: too little contrast: {low[:4]}")
        for width in (WIDE[0], PHONE[0]):
            size(width, PHONE[1])
            check(js("document.documentElement.scrollWidth") <= width, f"click: at {width} pixels an open point is wider than the page")
            picture(f"point-{name}-{width}", width)
    scheme("light")
    size(*WIDE)
    check_charts("click", 4)
    check_quiet("click")
    # A point without a section, as one that was predicted, has its row of numbers.
    number = js("(section => { section.remove(); return section.id.replace('point-', ''); })(document.querySelector('details.point:not([open])'))")
    js("document.querySelectorAll('details.point:not([open])').forEach(section => section.remove())")
    shape = driver.find_elements(By.CSS_SELECTOR, "#map g.mark-rect.role-mark path")[0]
    driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", shape)
    webdriver.ActionChains(driver).move_to_element(shape).click().perform()
    chosen = "#map details.behind[open] tr.chosen"
    check(comes(lambda: js(f"!!document.querySelector('{chosen}')")), f"click: nothing is marked for point {number} without a section")
    # On paper is what was opened, and no more.
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = js("[...document.querySelectorAll('details.point')].filter(point => point.checkVisibility()).length")
    check(shown == 1, f"click: {shown} points are on paper")
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})["data"])
    with open(os.path.join(PICTURES, "paper-point.pdf"), "wb") as file:
        file.write(pdf)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


OVERLAPS = """[...document.querySelectorAll("#ladder .plot svg")].flatMap(svg => {
    const texts = [...svg.querySelectorAll("g.mark-text.role-mark text")].filter(text => text.textContent && text.style.opacity !== "0");
    const boxes = texts.map(text => text.getBoundingClientRect());
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
    return boxes.flatMap((box, i) => boxes.slice(i + 1).map((other, k) => [box, other, texts[i].textContent, texts[i + 1 + k].textContent]))
        .filter(([a, b]) => meet(a, b)).map(([, , a, b]) => a + " / " + b);
})"""


def test_tables():
    summary = json.load(open(os.path.join(WORK, "plain", "summary.json"), encoding="utf-8"))
    rows = {int(row["point"]): row for row in rows_of("#map table")}
    check(len(rows) == len(summary["points"]), f"tables: {len(rows)} rows for {len(summary['points'])} points")
    for point in summary["points"]:
        row = rows[point["id"]]
        measured = point["throughput"]["median"]
        shown = float(row["samples/s"].replace(",", "")) if measured is not None else None
        check(measured is None or abs(shown - measured) <= 0.51, f"tables: point {point['id']} shows {row['samples/s']} for {measured}")
        for key, value in point["settings"].items():
            check(row[key] == str(value), f"tables: point {point['id']} shows {key} = {row[key]}, not {value}")
    ladder = {row["stage"]: row for row in rows_of("#ladder table") if row["what"] == "capacity"}
    for stage in summary["points"][summary["best"]]["stages"]:
        shown = ladder[stage["name"]]["samples/s"]
        if stage["capacity"] is not None:
            check(abs(float(shown.replace(",", "")) - stage["capacity"]) <= 0.51, f"tables: {stage['name']} shows {shown} for {stage['capacity']}")
        else:
            check(shown == "–", f"tables: {stage['name']} shows {shown} for what is not known")


# --- who reads otherwise ------------------------------------------------------------------------------

CONTRAST = """(() => {
    // Colours by way of a canvas: whatever a style is written as, it comes out as bytes.
    const context = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgb = colour => { context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data]; };
    const linear = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
    const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
    const ground = element => { for (let at = element; at; at = at.parentElement) {
        const colour = rgb(getComputedStyle(at).backgroundColor); if (colour[3] > 0) return colour; } return [255, 255, 255, 255]; };
    const low = [];
    for (const element of document.querySelectorAll("h1, h2, h3, p, li, a, td, th, dt, dd, summary, code, caption, output, label span, strong, .figures b, .figures span")) {
        if (!element.checkVisibility() || !element.textContent.trim()) continue;
        const is = ratio(rgb(getComputedStyle(element).color), ground(element));
        if (is < 4.5) low.push([element.tagName, element.textContent.slice(0, 30), is]);
    }
    for (const text of document.querySelectorAll(".plot svg g.role-axis text, .plot svg g.role-legend text, .plot svg g.role-title text")) {
        const is = ratio(rgb(getComputedStyle(text).fill), ground(text.closest(".plot")));
        if (is < 4.5) low.push(["svg", text.textContent.slice(0, 30), is]);
    }
    return low;
})()"""


def test_schemes():
    for name in ("light", "dark"):
        scheme(name)
        low = js(CONTRAST)
        check(not low, f"{name}: too little contrast: {low[:4]}")
    scheme("light")
    ink = "getComputedStyle(document.querySelector('#map g.role-axis text')).fill"
    light = js(ink)
    scheme("dark")
    check(js(ink) != light, "dark: the charts do not follow a change of the scheme")
    check(js("getComputedStyle(document.body).backgroundColor") not in ("rgb(255, 255, 255)", "rgb(255, 255, 252)"),
          "dark: the page stays light")
    picture("dark", WIDE[0])
    scheme("light")
    picture("light", WIDE[0])


def test_structure():
    levels = js("[...document.querySelectorAll('h1,h2,h3,h4')].map(e => +e.tagName[1])")
    check(levels[0] == 1 and levels.count(1) == 1, f"structure: headings {levels}")
    check(all(b <= a + 1 for a, b in zip(levels, levels[1:])), f"structure: headings jump: {levels}")
    for landmark in ("body > header", "nav[aria-label]", "main", "footer"):
        check(js(f"document.querySelectorAll('{landmark}').length") == 1, f"structure: not one {landmark}")
    ids = js("[...document.querySelectorAll('[id]')].map(e => e.id)")
    check(len(ids) == len(set(ids)), "structure: an id stands twice")
    check(js("[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.hash))"), "structure: a link leads nowhere")
    check(js("[...document.querySelectorAll('figure.chart')].filter(f => f.querySelector('.plot')).every(f => f.querySelector('details table'))"),
          "structure: a chart has no table behind it")
    check(js("[...document.querySelectorAll('table')].every(t => t.caption && t.querySelector('th[scope]'))"), "structure: a table without caption or heads")
    check(js("document.documentElement.lang") == "en", "structure: no language")


def focused():
    return js("(e => e.tagName + (e.id ? '#' + e.id : '') + ' ' + (e.textContent || e.getAttribute('aria-valuetext') || '').slice(0, 20))(document.activeElement)")


def test_keyboard():
    open_page("plain")
    size(*WIDE)
    body = driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    check(js("document.activeElement.className") == "skip", f"keyboard: first is {focused()}")
    check(js("document.activeElement.getBoundingClientRect().left") >= 0, "keyboard: the skip link stays hidden when it has the focus")
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    check(js("document.activeElement.id") == "main", f"keyboard: skipping leads to {focused()}")
    seen, tops = [], []
    for _ in range(60):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        if js("document.activeElement === document.body"):
            break
        seen.append(focused())
        tops.append(js("document.activeElement.getBoundingClientRect().top + scrollY"))
        check(js("document.activeElement.checkVisibility()"), f"keyboard: {seen[-1]} has the focus and is not seen")
        style = js("(s => [s.outlineStyle, parseFloat(s.outlineWidth)])(getComputedStyle(document.activeElement))")
        check(style[0] != "none" and style[1] >= 2, f"keyboard: {seen[-1]} does not show its focus")
    check(tops == sorted(tops), "keyboard: the focus does not go down the page")
    check(any(item.startswith("INPUT") for item in seen), "keyboard: the slider is not reached")
    check(sum(item.startswith("SUMMARY") for item in seen) >= 5, f"keyboard: not all tables are reached: {seen}")
    summary = driver.find_element(By.CSS_SELECTOR, "#map summary")
    driver.execute_script("arguments[0].focus()", summary)
    summary.send_keys(Keys.ENTER)
    check(driver.find_element(By.CSS_SELECTOR, "#map table").is_displayed(), "keyboard: Enter does not open a table")


def test_narrow():
    for width in (PHONE[0], 320):
        size(width, PHONE[1])
        open_page("plain")
        check(js("document.documentElement.scrollWidth") <= width, f"{width} pixels: the page is {js('document.documentElement.scrollWidth')} wide")
        check_charts(f"{width} pixels", 4)
        check(not js(OVERLAPS), f"{width} pixels: labels of the ladder stand on each other: {js(OVERLAPS)}")
        if width == PHONE[0]:
            picture("phone", width)
            scheme("dark")
            picture("phone-dark", width)
            scheme("light")
    # A page that is made wider, or turned, is filled.
    size(*WIDE)
    check(comes(lambda: all(chart["width"] > 700 for chart in js(MARKS) if not chart["why"])), "widened: a chart stays narrow")
    check_charts("widened", 4)


def test_paper():
    scheme("dark")
    open_page("plain")
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})["data"])
    with open(os.path.join(PICTURES, "paper.pdf"), "wb") as file:
        file.write(pdf)
    pages = len(re.findall(rb"/Type\s*/Page[^s]", pdf))
    check(2 <= pages <= 20, f"paper: {pages} pages")
    heads = set(js("[...document.querySelectorAll('h2, h3')].map(head => head.textContent.replace(/\\s+/g, ' ').trim())"))
    printed = subprocess.run(["pdftotext", "-layout", os.path.join(PICTURES, "paper.pdf"), "-"], capture_output=True, text=True, check=True).stdout
    ends = [" ".join(page.strip().splitlines()[-1].split()) for page in printed.split("\f") if page.strip()]
    orphans = [end for end in ends if any(head == end or head.endswith(" " + end) for head in heads)]
    check(len(ends) == pages and not orphans, f"paper: at the end of a page, without what they are of: {orphans}")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    check(js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "paper: dark ground is printed")
    low = js(CONTRAST)
    check(not low, f"paper: too little contrast: {low[:4]}")
    # Drawn for a wide window, laid out for a narrow sheet: no script runs between the two.
    cut = js("""(() => {
        document.body.style.width = "680px";
        const cut = [...document.querySelectorAll(".plot svg")].filter((svg) => svg.clientWidth > 0 &&
            (svg.getBoundingClientRect().right > document.body.getBoundingClientRect().right + 1 || !svg.getAttribute("viewBox")));
        const ids = cut.map((svg) => svg.closest("figure").id);
        document.body.style.width = "";
        return ids;
    })()""")
    check(not cut, f"paper: charts are cut at the sheet's edge: {cut}")
    picture("paper", 800)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_without_scripts():
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    size(*WIDE)
    path = os.path.join(WORK, "plain", "report.html")
    driver.get("file://" + urllib.parse.quote(path))
    tables = driver.find_elements(By.TAG_NAME, "table")
    check(len(tables) >= 6, f"no scripts: {len(tables)} tables")
    check(all(table.is_displayed() and table.size["height"] > 20 for table in tables), "no scripts: a table cannot be read")
    cells = driver.find_elements(By.CSS_SELECTOR, "#map tbody td")
    check(len(cells) > 50 and cells[0].is_displayed(), "no scripts: the map's table is empty")
    check("tables have all their numbers" in driver.find_element(By.TAG_NAME, "main").text, "no scripts: it does not say what is missing")
    size(WIDE[0], 6000)
    driver.save_screenshot(os.path.join(PICTURES, "no-scripts.png"))
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_hostile():
    size(*WIDE)
    path = open_page('host"ile')
    check(js("window.owned") is None, f"hostile: a script of the result ran ({js('window.owned')})")
    check(js("document.images.length") == 0, "hostile: a picture was made of text")
    check(js("document.querySelectorAll('script').length - document.querySelectorAll('script[nonce], figure script[type=\"application/json\"]').length") == 0,
          "hostile: a script element was made of text")
    check(js("[...document.querySelectorAll('*')].every(e => ![...e.attributes].some(a => a.name.startsWith('on')))"), "hostile: an event handler was made of text")
    check("</script><script>window.owned=1</script>" in js("document.querySelector('h1').textContent"), "hostile: the name is not shown as it is")
    check(js("document.title").startswith("</script><script>window.owned=1"), "hostile: the title is not shown as it is")
    check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", js("document.body.textContent")), "hostile: control characters came through")
    check("Planted conditions:" in js("document.querySelector('main').innerText"), "hostile: planted conditions are not said")
    check(js("[...document.querySelectorAll('#map td')].some(td => td.textContent.startsWith('failed'))"), "hostile: a failed point is not marked")
    check_charts("hostile", 3)
    check_quiet("hostile")
    # A tooltip is made of the same texts.
    cell = driver.find_elements(By.CSS_SELECTOR, "#map g.mark-rect path")[0]
    webdriver.ActionChains(driver).move_to_element(cell).perform()
    check(comes(lambda: js("!!document.querySelector('#tip.visible')")), "hostile: no tooltip over a cell of the map")
    check(js("window.owned") is None and js("document.images.length") == 0, "hostile: a tooltip runs text")
    picture("hostile", WIDE[0])
    text = open(path, encoding="utf-8").read()  # is UTF-8 throughout
    check(text.count("</script>") == len(re.findall(r"<script\b", text)), "hostile: a script element is ended by text")


def test_class():
    size(*WIDE)
    open_page("class")
    check("8 students passed 26 of the 34 labs" in js("document.querySelector('.lead').textContent"), "class: the count is not the first sentence")
    check(js("window.owned") is None and js("document.images.length") == 0, "class: a student's name became a part of the page")
    check_quiet("class")
    for name in ("light", "dark"):
        scheme(name)
        low = js(CONTRAST)
        check(not low, f"class, {name}: too little contrast: {low[:4]}")
        picture(f"class-{name}", WIDE[0])
    scheme("light")
    for width in (WIDE[0], PHONE[0], 320):
        size(width, PHONE[1])
        open_page("class")
        check(js("document.documentElement.scrollWidth") <= width, f"class: at {width} pixels it is {js('document.documentElement.scrollWidth')} wide")
        check_charts(f"class, {width} pixels", 3)
    picture("class-phone", PHONE[0])
    size(*WIDE)


def test_crib():
    driver.get("file://" + urllib.parse.quote(os.path.join(WORK, "crib.html")))
    for width in (WIDE[0], PHONE[0], 320):
        size(width, PHONE[1])
        check(js("document.documentElement.scrollWidth") <= width, f"crib: at {width} pixels it is {js('document.documentElement.scrollWidth')} wide")
    size(*WIDE)
    for name in ("light", "dark"):
        scheme(name)
        low = js(CONTRAST)
        check(not low, f"crib, {name}: too little contrast: {low[:4]}")
    scheme("light")
    said, asked = messages(), requests()
    check(not said and not asked, f"crib: the console says {said[:3]}, it asked for {asked[:3]}")
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    with open(os.path.join(PICTURES, "crib.pdf"), "wb") as file:
        file.write(pdf)
    pages = len(re.findall(rb"/Type\s*/Page[^s]", pdf))
    check(pages == 1, f"crib: {pages} sheets of paper")


def test_accept():
    size(*WIDE)
    open_page("accept")
    check("FAIL gpu-0421: not fit" in js("document.querySelector('.lead').textContent"), "accept: the verdict is not the first sentence")
    check_charts("accept", 2)
    check_quiet("accept")
    picture("accept", WIDE[0])
    for name in ("light", "dark"):
        scheme(name)
        low = js(CONTRAST)
        check(not low, f"accept, {name}: too little contrast: {low[:4]}")
    picture("accept-dark", WIDE[0])
    scheme("light")
    for width in (PHONE[0], 320):
        size(width, PHONE[1])
        open_page("accept")
        check(js("document.documentElement.scrollWidth") <= width, f"accept, {width} pixels: the page is {js('document.documentElement.scrollWidth')} wide")
        check_charts(f"accept, {width} pixels", 2)
    picture("accept-phone", 320)
    size(*WIDE)
    open_page("accept_hostile")
    check(js("window.owned") is None and js("document.images.length") == 0, "accept: a name became a part of the page")
    check("</script><script>window.owned=1" in js("document.querySelector('.lead').textContent"), "accept: the name is not shown as it is")
    check_charts("accept, hostile", 2)
    check_quiet("accept, hostile")


for test in (test_drawn, test_folds, test_slider, test_click, test_tables, test_structure, test_schemes, test_keyboard, test_narrow, test_paper,
             test_without_scripts, test_hostile, test_accept, test_class, test_crib):
    begun = time.time()
    try:
        test()
    except Exception as error:  # a page that lacks what a test needs: the others still run
        check(False, f"{test.__name__}: {type(error).__name__}: {str(error).splitlines()[0]}")
    print(f"{test.__name__} {time.time() - begun:.1f} s")
driver.quit()
print(f"browser: {passed} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)
