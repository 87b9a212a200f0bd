"""Opens a page of ddprun in a headless Chromium without network: every chart is drawn, no script fails.

    browser_test.py CHROMIUM COMMAND...    the command writes its page to the path that is added to it
"""
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
LONGEST = 120  # seconds


class Seen(html.parser.HTMLParser):
    """The content of the document after its scripts have run."""

    def __init__(self):
        super().__init__()
        self.drawings = []  # for each: the number of marks in its SVG
        self.widths = []  # of the SVGs
        self.figures = []  # for each group of charts: "half" or "whole", and the width, of each
        self.tables = 0
        self.texts = []
        self.body = {}
        self.failed = 0
        self.depth = 0  # within a drawing

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        classes = (values.get("class") or "").split()
        if tag == "body":
            self.body = values
        self.tables += tag == "table"
        if "charts" in classes:
            self.figures.append([])
        if tag == "figure":
            self.figures[-1].append([classes[0], 0])
        if "drawing" in classes:
            self.failed += "failed" in classes
            self.drawings.append(0)
            self.depth = 1
        elif self.depth:
            self.depth += tag == "div"
            if tag == "svg" and "marks" in classes:
                self.widths.append(float(values["width"]))
                self.figures[-1][-1][1] = self.widths[-1]
            self.drawings[-1] += tag == "path" and values.get("aria-roledescription") in (
                "bar", "line mark", "area mark", "point", "rule mark")

    def handle_endtag(self, tag):
        self.depth -= bool(self.depth) and tag == "div"

    def handle_data(self, data):
        self.texts.append(data)


def chromium(program, page, *options, width=1280, height=3000):
    """Its standard output and the messages of its console and network."""
    with tempfile.TemporaryDirectory() as profile:
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--hide-scrollbars", f"--user-data-dir={profile}", f"--window-size={width},{height}",
                   "--proxy-server=127.0.0.1:9", "--virtual-time-budget=20000", "--enable-logging=stderr",
                   *options, page.as_uri()]
        ran = subprocess.run(command, capture_output=True, timeout=LONGEST, check=True)
        return ran.stdout.decode(), ran.stderr.decode(errors="replace")


# Chromium's windows are at least 500 pixels wide; a frame can be narrower.
PHONE = """<!doctype html><body style="margin:0"><iframe src="%s" width="390" height="%d" style="border:0"></iframe>
<pre></pre><script>
const frame = document.querySelector("iframe");
const look = () => {
  const seen = frame.contentDocument;
  if (!seen?.body?.dataset.drawn) return setTimeout(look, 50);
  const widths = [...seen.querySelectorAll("svg.marks, .role-legend, h1, h2, h3, p")].map((one) => one.getBoundingClientRect().right);
  document.querySelector("pre").textContent = JSON.stringify({ page: seen.documentElement.scrollWidth,
    widest: Math.max(...widths) });
};
look();
</script>"""


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def console(said):
    return re.findall(r"CONSOLE.*", said)


def drawn(program, page, **settings):
    document, said = chromium(program, page, "--dump-dom", **settings)
    check(not console(said), f"the console says: {console(said)}")
    seen = Seen()
    seen.feed(document)
    charts = len(re.findall(r'class="drawing', page.read_text()))
    check(charts > 0, "the page has no chart")
    check(seen.body.get("data-drawn") == str(charts), f"{seen.body} of {charts} charts")
    check("data-broken" not in seen.body, "a text became a script")
    check(seen.failed == 0, f"{seen.failed} charts say that they could not be drawn")
    check(len(seen.drawings) == charts and all(seen.drawings), f"marks of each chart: {seen.drawings}")
    check(seen.tables >= charts, f"{seen.tables} tables for {charts} charts")
    return seen


def check_widths(figures):
    """Two half charts share a line; one without a neighbour has the full width."""
    while figures:
        pair = figures[:2] if [kind for kind, _ in figures[:2]] == ["half", "half"] else figures[:1]
        widths = [width for _, width in pair]
        check(all(400 < width < 600 for width in widths) if len(pair) == 2 else widths[0] > 900, f"widths: {pair}")
        figures = figures[len(pair):]


def on_a_phone(program, page, height=6000):
    """Only a table, in its own box, may scroll sideways."""
    frame = page.with_name("phone.html")
    frame.write_text(PHONE % (page.as_uri(), height))
    document, said = chromium(program, frame, "--dump-dom", "--allow-file-access-from-files")
    check(not console(said), f"on a phone the console says: {console(said)}")
    seen = re.search(r"<pre>(.*?)</pre>", document)[1]
    check(seen, "no chart was drawn on a phone")
    seen = json.loads(seen)
    check(max(seen.values()) <= 390, f"wider than a phone's 390 pixels: {seen}")
    return frame


def pixels(program, page, picture, *options, **settings):
    chromium(program, page, f"--screenshot={picture}", *options, **settings)
    check(picture.read_bytes().startswith(b"\x89PNG"), "no screenshot")
    return picture.read_bytes()


def main():
    program, *command = sys.argv[1:]
    if not os.access(program, os.X_OK):
        print("skipped: no chromium; apt-get install chromium")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        subprocess.run([*command, str(page)], check=True, timeout=LONGEST)
        text = page.read_text()
        check(not re.search(r"""(src|href)=["']?(https?:)?//""", text), "the page refers to something outside")
        wide = drawn(program, page)
        for figures in wide.figures:
            check_widths(figures)
        phone = on_a_phone(program, page)
        keep = pathlib.Path(os.environ.get("DDPRUN_SCREENSHOTS", folder))
        light = pixels(program, page, keep / "light.png")
        dark = pixels(program, page, keep / "dark.png", "--blink-settings=preferredColorScheme=0")
        check(light != dark, "light and dark look alike")
        pixels(program, phone, keep / "phone.png", width=500, height=6000)
    print(f"ok: {len(wide.drawings)} charts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
