"""Builds the site of docs/ as its reader gets it: every page is there, has a place and can be found by the search.

    site_test.py DDPRUN MKDOCS CHROMIUM    MKDOCS or CHROMIUM may be missing: then a line says what is skipped
"""
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

SKIPPED = 77
LONGEST = 120  # seconds, for one build, and for the browser
root = pathlib.Path(__file__).resolve().parents[2]
# What each fault of a copy of docs/ is reported as.
FAULTS = {
    "a dead link": ("[gone](gone.md)", "'gone.md'"),
    "a dead link out of docs/": ("[gone](../core/gone.hpp)", "'../core/gone.hpp'"),
    "a dead anchor": ("[gone](config.md#gone)", "'config.md#gone'"),
}


def build(tree, out):
    command = [mkdocs, "build", "--strict", "--config-file", tree / "mkdocs.yml", "--site-dir", out]
    return subprocess.run(command, env=os.environ | {"DDPRUN_BIN": ddprun, "NO_MKDOCS_2_WARNING": "1"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONGEST)


def missing(out):
    """What a reader of the site would miss."""
    start = (out / "index.html").read_text()
    pages = [page.relative_to(root / "docs") for page in (root / "docs").rglob("*.md")]
    for page in map(str, [*pages, pathlib.Path("commands.md"), pathlib.Path("headers.md")]):
        name = page.replace(".md", ".html")
        if not (out / name).is_file():
            yield f"{page} is not in the site"
        # The start page has the whole navigation.
        elif f'href="{name}"' not in start:
            yield f"{page} is not in the navigation"
    for page in out.rglob("*.html"):
        for address in re.findall(r'<(?:script|link|img)\b[^>]*(?:src|href)="(https?://[^"]*)"', page.read_text()):
            yield f"{page.relative_to(out)} loads {address}"
    if "--minbytes" not in (out / "commands.html").read_text():
        yield "commands.html lacks the options of ddprun bench"


class Server(http.server.SimpleHTTPRequestHandler):
    """The site. Its start page is not loaded completely until the search has found something."""
    found = threading.Event()

    def do_GET(self):
        if self.path == "/found":
            self.found.set()
        elif self.path == "/wait":
            self.found.wait(LONGEST / 2)
        elif self.path.startswith("/index.html"):
            page = pathlib.Path(self.directory, "index.html").read_bytes()
            page += b'<img src="/wait"><script>setInterval(() => document.querySelector(".md-search-result__link") && ' \
                    b'fetch("/found"), 100)</script>'
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)
            return
        else:
            super().do_GET()
            return
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def search(out, words):
    """The links that the search of the site finds in Chromium."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *call: Server(*call, directory=str(out)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom",
                   f"http://127.0.0.1:{server.server_port}/index.html?q={words}"]
        document = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST).stdout
    server.shutdown()
    return re.findall(r'href="([^"]*)" class="md-search-result__link"', document)


ddprun, mkdocs, chromium = sys.argv[1:]
if not os.access(mkdocs, os.X_OK) or not shutil.which("doxygen"):
    print("skipped: mkdocs or doxygen is not installed; ./run-tests installs them")
    sys.exit(SKIPPED)

with tempfile.TemporaryDirectory(prefix="ddprun-site-") as folder:
    out, tree = pathlib.Path(folder) / "site", pathlib.Path(folder) / "tree"
    built = build(root, out)
    if built.returncode:
        sys.exit(f"the site cannot be built:\n{built.stdout}")
    failures = list(missing(out))

    tree.mkdir()
    for entry in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SUPPORT.md", "mkdocs.yml", "bench", "examples", "core", "c"]:
        (tree / entry).symlink_to(root / entry)
    shutil.copytree(root / "docs", tree / "docs")
    (tree / "docs/orphan.md").write_text("# A page without a place\n")
    with (tree / "docs/gloo.md").open("a") as page:
        page.write("\n".join(["", *(text for text, _ in FAULTS.values()), ""]))
    refused = build(tree, pathlib.Path(folder) / "refused")
    if not refused.returncode:
        failures.append("a site with faults is built without an error")
    for fault, (_, report) in (FAULTS | {"a page without a place": ("", "orphan.md")}).items():
        if report not in refused.stdout:
            failures.append(f"{fault} is not reported:\n{refused.stdout}")

    if os.access(chromium, os.X_OK):
        found = search(out, "bucket_cap_mb")
        if not any("config.html" in link for link in found):
            failures.append(f"the search for bucket_cap_mb finds {found}, and not config.html")
    else:
        print("skipped: no Chromium, which would try the search")

print("\n".join(failures) if failures else "the site is complete")
sys.exit(bool(failures))
