"""The page, as people use it: Chromium on the real program, with a real collection.

With LOOKALIKE_PAGE=server/page the files of the page are taken from there and not from the program, which is quicker than
compiling it while one works on them.
"""

import os
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

from serving import ROOT, serving
from story import REPORT, story

SCREENSHOTS = ROOT / "target/screenshots"
PAGE = os.environ.get("LOOKALIKE_PAGE")

TOKEN = "a-token-for-the-page"
HOSTILE = "<img src=x onerror=alert(1)>"
HOSTILE_SCRIPT = "\"'><script>window.stolen = true</script>"

DESKTOP = {"viewport": {"width": 1280, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
LOOKS = {
    "light": DESKTOP,
    "dark": {**DESKTOP, "color_scheme": "dark"},
    "phone": PHONE,
    "phone-dark": {**PHONE, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    assert chromium, "there is no chromium; server/tests/environment installs it"
    # Chromium's sandbox cannot be set up by root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    """A server with the sample and a story in its collection."""
    with serving(tmp_path_factory.mktemp("page") / "news", "--keep-text", "--margins") as server:
        server.load_sample()
        assert server.ask("/v1/documents", story())[0] == 200
        yield server


@pytest.fixture
def empty(tmp_path):
    with serving(tmp_path / "empty", "--keep-text", "--margins") as server:
        yield server


@pytest.fixture
def guarded(tmp_path):
    with serving(tmp_path / "guarded", "--keep-text", tokens={"LOOKALIKE_TOKEN": TOKEN}) as server:
        server.load_sample(token=TOKEN)
        yield server


@pytest.fixture
def visit(browser):
    """Opens the page of a server. Whatever a test does: nothing goes wrong unseen, and nothing is asked of others."""
    contexts = []
    wrong = []

    def open_page(server, view="", *, refused=False, **look):
        context = browser.new_context(**{**DESKTOP, **look})
        contexts.append(context)
        context.set_default_timeout(10_000)
        origin = server.url

        def console(message):
            # A browser tells of every answer that refuses something; tests in which that has to be say so.
            is_refusal = refused and "the server responded with a status of 4" in message.text
            if message.type in ("error", "warning") and not is_refusal:
                wrong.append(f"console: {message.text}")

        def request(asked):
            if not asked.url.startswith((f"{origin}/", "data:")):
                wrong.append(f"asked of another: {asked.url}")

        def dialog(shown):
            wrong.append(f"dialog: {shown.message}")
            shown.dismiss()

        context.on("console", console)
        context.on("weberror", lambda error: wrong.append(f"error: {error.error}"))
        context.on("request", request)
        context.on("dialog", dialog)
        if PAGE:
            context.route(lambda url: not re.search(r"/v1/|sample\.jsonl", url), from_folder)
        tab = context.new_page()
        tab.goto(f"{origin}/{view}")
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def from_folder(route):
    """The file of the page with the headers that the server has for it."""
    name = urlsplit(route.request.url).path.lstrip("/") or "index.html"
    route.fulfill(response=route.fetch(), body=(Path(PAGE) / name).read_bytes())


def shot(tab, name):
    """A picture of the whole page, for people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.mouse.move(0, 0)
    tab.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True, animations="disabled")


def search_for(tab, text):
    tab.locator("#query-text").fill(text)
    tab.locator("#search-button").click()


def distances(tab):
    return [int(hit.get_attribute("data-distance")) for hit in tab.locator(".hit").all()]


def slide(tab, slider, value):
    """Moves a slider as a finger does: with every step in between told to the page."""
    tab.locator(slider).evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input', { bubbles: true })); }", value
    )


def choose(tab, name):
    """A choice among several."""
    tab.get_by_role("radio", name=name, exact=True).check()


# How many documents there are, the story's first report with some words changed, and a text that looks like no other.
RECORDS = 144 + len(story())
FIRST = story()[0]["id"]
CHANGED = " ".join(REPORT).replace("eleven days", "nine days").replace("morning tide", "evening tide")
ODD_TEXT = "Seven herons stood in the shallows while the miller counted sacks of barley and hummed to himself all morning."


# (a) An empty collection

def test_an_empty_collection_says_how_to_fill_it(visit, empty):
    tab = visit(empty)
    expect(tab.get_by_role("heading", name="This collection is empty")).to_be_visible()
    expect(tab.locator(".command").first).to_contain_text(f"curl {empty.url}/v1/documents")
    expect(tab.locator(".command").last).to_contain_text("lookalike add empty documents.jsonl")
    shot(tab, "empty")

    tab.get_by_role("button", name="Load the sample documents").click()
    expect(tab.get_by_text("144 sample documents added.")).to_be_visible()
    expect(tab.locator("#about")).to_contain_text("144 records")
    shot(tab, "loaded")

    # What it suggests has lookalikes.
    tab.locator("#suggested").click()
    expect(tab.locator(".hit").first).to_be_visible()


def test_the_first_document_can_be_added_by_hand(visit, empty):
    tab = visit(empty)
    tab.locator("#add-id").fill("a1")
    tab.locator("#add-text").fill(ODD_TEXT)
    tab.locator("#add-button").click()
    expect(tab.get_by_text("a1 was added.")).to_be_visible()
    search_for(tab, ODD_TEXT)
    expect(tab.locator(".hit")).to_have_count(1)


# (b) Adding

def test_a_document_is_added_by_hand(visit, empty):
    empty.load_sample()
    tab = visit(empty, "#collection")
    expect(tab.locator("#tiles")).to_contain_text("144")
    tab.locator("#add-id").fill("herons")
    tab.locator("#add-text").fill(ODD_TEXT)
    tab.locator("#add-button").click()
    expect(tab.locator("#add-outcome")).to_have_text("herons was added.")
    expect(tab.locator("#about")).to_contain_text("145 records")

    # Again: it is replaced. With nothing to sign: it is not added, and stays in the form.
    tab.locator("#add-id").fill("herons")
    tab.locator("#add-text").fill(ODD_TEXT + " Then it rained.")
    tab.locator("#add-button").click()
    expect(tab.locator("#add-outcome")).to_contain_text("is replaced")
    tab.locator("#add-id").fill("nothing")
    tab.locator("#add-text").fill("!")
    tab.locator("#add-button").click()
    expect(tab.locator("#add-outcome")).to_contain_text("too few words")
    expect(tab.locator("#add-text")).to_have_value("!")

    tab.get_by_role("link", name="Search", exact=True).click()
    search_for(tab, ODD_TEXT)
    expect(tab.locator('.hit[data-id="herons"]')).to_be_visible()


# (c) Searching

def test_a_text_finds_what_looks_like_it(visit, news):
    tab = visit(news)
    search_for(tab, CHANGED)
    expect(tab.locator("#result-line")).to_contain_text(re.compile(rf"hits among {RECORDS} records, exact, by scan"))
    found = distances(tab)
    assert found == sorted(found) and 0 < found[0] <= 36
    first = tab.locator(".hit").first
    expect(first).to_have_attribute("data-id", FIRST)
    expect(first.locator(".distance")).to_have_text(re.compile(r"^\d+ bits?$"))
    expect(first.locator(".likeness .number")).to_have_text(re.compile(r"^0\.9\d\d$"))
    expect(first.locator(".chips")).to_contain_text("harbour.example")

    # The slider: the meaning follows at once, the hits soon after, all of them within the radius.
    slide(tab, "#radius", 64)
    expect(tab.locator("#radius-meaning")).to_have_text("64 of 256 bits: as of a cosine of about 0.71")
    expect(tab.locator(".hit").nth(len(found))).to_be_visible()
    assert len(found) < len(distances(tab)) and max(distances(tab)) <= 64
    slide(tab, "#radius", 0)
    expect(tab.locator("#radius-meaning")).to_contain_text("the same signature")
    expect(tab.get_by_text("Nothing looks like it within this radius.")).to_be_visible()

    choose(tab, "The nearest")
    expect(tab.locator(".hit")).to_have_count(10)


def test_a_search_that_is_not_possible_says_so_at_its_field(visit, news):
    tab = visit(news, refused=True)
    tab.locator("#search-button").click()
    expect(tab.locator('[data-problem="text"]')).to_have_text("Give a text to search with.")
    tab.locator("#filter").fill("version ==")
    search_for(tab, ODD_TEXT)
    expect(tab.locator('[data-problem="filter"]')).to_be_visible()
    expect(tab.locator("#filter")).to_be_focused()
    tab.locator("#filter").fill('version = "2.10.x"')
    slide(tab, "#radius", 0)
    tab.locator("#search-button").click()
    expect(tab.get_by_text("Nothing within reach passes the filter.")).to_be_visible()
    choose(tab, "Signature")
    tab.locator("#query-signature").fill("zz")
    tab.locator("#search-button").click()
    expect(tab.locator('[data-problem="signature"]')).to_be_visible()
    choose(tab, "Id")
    tab.locator("#query-id").fill("there is none")
    tab.locator("#search-button").click()
    expect(tab.locator('[data-problem="id"]')).to_contain_text("there is none")
    shot(tab, "search-problem")


def test_a_file_is_searched_with(visit, news):
    tab = visit(news)
    page = {"name": "about.html", "mimeType": "text/html", "buffer": f"<p>{CHANGED}</p>".encode()}
    # A file can be given to a page that is not shown yet, and that nobody listens to.
    expect(tab.locator("#search-button")).to_be_visible()
    tab.locator("#query-file").set_input_files(page)
    expect(tab.locator("#query-text-hint")).to_have_text("about.html")
    expect(tab.locator("#query-html")).to_be_checked()
    tab.locator("#search-button").click()
    expect(tab.locator(".hit").first).to_have_attribute("data-id", FIRST)


# (d) Comparing

def test_a_comparison_shows_words_and_bits_that_differ(visit, news):
    tab = visit(news)
    search_for(tab, CHANGED)
    tab.locator(".hit").first.get_by_role("link", name="Compare").click()
    expect(tab.get_by_role("heading", name="Comparison")).to_be_focused()
    body = tab.locator("#comparison-body")
    expect(body.locator("#diff del", has_text="nine")).to_be_visible()
    expect(body.locator("#diff del", has_text="evening")).to_be_visible()
    expect(body.locator("#diff ins", has_text="eleven")).to_be_visible()
    # What is the same around them is all there, spaces too.
    expect(body.locator("#diff .diff-row .side-a").first).to_contain_text("came in with the evening tide. Pilots said")

    # As many bits are marked as the distance says, and the table lists each of them.
    distance = int(body.locator(".facts .big").first.inner_text())
    assert distance > 0
    expect(body.locator(".bit")).to_have_count(256)
    expect(body.locator(".bit.differs")).to_have_count(distance)
    body.locator("#bits-table summary").click()
    expect(body.locator("#bits-table tbody tr")).to_have_count(distance)
    expect(body.locator("#bits-table")).to_contain_text("Margin A")
    expect(body.get_by_role("heading", name="Features that differ most")).to_be_visible()

    # Back to the hits, as they were.
    tab.locator("#comparison-close").click()
    expect(tab.locator(".hit").first).to_be_visible()
    expect(tab.locator("#query-text")).not_to_have_value("")


# (e) Clusters

def test_clusters_are_browsed(visit, news):
    tab = visit(news, "#clusters")
    line = re.compile(rf"\d+ clusters of \d+ documents among {RECORDS} records, exact")
    expect(tab.locator("#clusters-line")).to_contain_text(line)
    sizes = tab.locator(".cluster").evaluate_all("(all) => all.map((one) => Number(one.dataset.size))")
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 2

    # The suspicious ones come first in the other orders.
    choose(tab, "Longest chains")
    expect(tab.locator(".cluster").first).to_contain_text("Suspicious: some are linked only by a chain of")
    choose(tab, "Least alike")
    far = tab.locator(".cluster").first
    expect(far).to_contain_text("Suspicious")
    size = int(far.get_attribute("data-size"))
    far.locator(".cluster-link").click()

    expect(tab.locator("#suspicious")).to_be_visible()
    expect(tab.locator("#members tbody tr")).to_have_count(size)
    expect(tab.locator("#members .keeper")).to_have_count(1)
    expect(tab.locator("#cluster-picture .node")).to_have_count(size)
    assert tab.locator("#cluster-picture .edge").count() >= size - 1

    # A comparison from the picture, one from the table, one of two that are chosen; back leads to the cluster each time.
    tab.locator("#cluster-picture a.node").first.click()
    expect(tab.locator("#diff")).to_be_visible()
    tab.keyboard.press("Escape")
    tab.locator("#members a.compare").first.click()
    expect(tab.locator("#diff")).to_be_visible()
    tab.go_back()
    expect(tab.locator("#compare-chosen")).to_have_attribute("aria-disabled", "true")
    choices = tab.locator(".choose-member")
    choices.nth(1).check()
    choices.nth(2).check()
    tab.locator("#compare-chosen").click()
    expect(tab.locator("#diff")).to_be_visible()
    tab.go_back()
    tab.locator("#cluster-back").click()
    expect(tab.locator("#cluster-list")).to_be_visible()


# (f) The collection

def test_the_collection_is_described(visit, news):
    tab = visit(news, "#collection")
    tiles = tab.locator("#tiles")
    for text in str(RECORDS), "256", "cosine", "text", "sqlite":
        expect(tiles).to_contain_text(text)
    expect(tab.locator("#histogram .column")).to_have_count(37)
    expect(tab.locator("#histogram .chart-told")).to_contain_text("pairs in all")
    tab.locator("#histogram .column").nth(0).hover()
    expect(tab.locator("#histogram .chart-told")).to_contain_text("at a distance of 0")
    slide(tab, "#collection-radius", 12)
    expect(tab.locator("#histogram .column")).to_have_count(13)
    expect(tab.locator("#plan")).to_contain_text("For a radius of 12")
    expect(tab.locator("#plan .badge")).to_have_text("answers")
    expect(tab.locator("#plan tbody tr").first).to_contain_text("scan")
    tab.get_by_text("Recipe", exact=True).last.click()
    expect(tab.locator("#recipe-json pre")).to_contain_text('"bits": 256')
    # It looks again every two seconds.
    with tab.expect_response("**/v1/stats"):
        pass


# (g) Without a mouse

def test_the_keyboard_is_enough(visit, news):
    tab = visit(news)
    # What is not shown yet cannot be focused, and nobody is told.
    expect(tab.locator("#query-text")).to_be_visible()
    tab.locator("#query-text").focus()
    expect(tab.locator("#query-text")).to_be_focused()
    tab.keyboard.insert_text(CHANGED)
    tab.keyboard.press("Control+Enter")
    expect(tab.locator(".hit").nth(1)).to_be_visible()
    links = tab.locator(".hit-link")
    for _ in range(20):
        if links.first.evaluate("(link) => link === document.activeElement"):
            break
        tab.keyboard.press("Tab")
    expect(links.first).to_be_focused()
    tab.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    tab.keyboard.press("ArrowUp")
    expect(links.first).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", name="Comparison")).to_be_focused()
    expect(tab.locator("#diff")).to_be_visible()
    tab.keyboard.press("Escape")
    # Where one was before.
    expect(links.first).to_be_focused()

    # The first stop of the Tab key leads past the navigation.
    tab = visit(news)
    expect(tab.locator("#search")).to_be_visible()
    tab.keyboard.press("Tab")
    expect(tab.locator("#skip")).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.locator("#content")).to_be_focused()


def test_the_picture_is_walked_with_arrows(visit, news):
    tab = visit(news, "#clusters")
    tab.locator(".cluster-link").first.focus()
    tab.keyboard.press("Enter")
    nodes = tab.locator("#cluster-picture a.node")
    nodes.first.focus()
    tab.keyboard.press("ArrowRight")
    expect(nodes.nth(1)).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.locator("#diff")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(nodes.nth(1)).to_be_focused()


# (h) On any screen

def check_fits(tab):
    """Nothing is wider than the screen: a page that has to be moved to the side cannot be read."""
    wide = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1], f"{tab.url} is {wide[0]} wide on a screen of {wide[1]}"


@pytest.mark.parametrize("look", LOOKS)
def test_every_view_fits(visit, news, look):
    tab = visit(news, **LOOKS[look])

    def look_at(name):
        check_fits(tab)
        shot(tab, f"{name}-{look}")

    look_at("start")
    search_for(tab, CHANGED)
    expect(tab.locator(".hit").first).to_be_visible()
    look_at("search")
    tab.locator(".hit-link").first.click()
    expect(tab.locator("#diff")).to_be_visible()
    look_at("compare")
    tab.get_by_role("link", name="Clusters", exact=True).click()
    expect(tab.locator(".cluster").first).to_be_visible()
    look_at("clusters")
    choose(tab, "Longest chains")
    expect(tab.locator(".cluster").first).to_contain_text("Suspicious")
    look_at("clusters-suspicious")
    tab.locator(".cluster-link").first.click()
    expect(tab.locator("#cluster-picture")).to_be_visible()
    look_at("cluster")
    tab.get_by_role("link", name="Collection", exact=True).click()
    expect(tab.locator("#plan table")).to_be_visible()
    expect(tab.locator("#histogram .column").first).to_be_visible()
    look_at("collection")
    is_dark = LOOKS[look].get("color_scheme") == "dark"
    # The three numbers of a colour: paper is dark in the dark, and light otherwise.
    paper = [int(part) for part in re.findall(r"\d+", tab.evaluate("getComputedStyle(document.body).backgroundColor"))]
    assert (max(paper) < 80) if is_dark else (min(paper) > 200)


# (i) Tokens

def test_a_token_is_asked_for(visit, guarded):
    tab = visit(guarded, refused=True)
    expect(tab.get_by_role("alert")).to_contain_text("This service asks for a token.")
    shot(tab, "token")
    tab.locator("#token").fill("wrong")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("alert")).to_contain_text("The token given is not a valid one.")
    shot(tab, "token-wrong")
    tab.locator("#token").fill(TOKEN)
    tab.get_by_role("button", name="Use it").click()
    expect(tab.locator("#about")).to_contain_text("144 records")
    search_for(tab, ODD_TEXT)
    expect(tab.locator("#result-line")).to_contain_text("among 144 records")
    # It is kept for this tab, and nowhere that another site or the address could tell it from.
    tab.reload()
    expect(tab.locator("#about")).to_contain_text("144 records")
    assert TOKEN not in tab.url
    assert tab.context.cookies() == [] and tab.evaluate("localStorage.length") == 0


# (j) Documents are hostile

def test_hostile_documents_are_shown_and_do_nothing(visit, empty):
    text = f"{HOSTILE} {HOSTILE_SCRIPT} {ODD_TEXT}"
    documents = [
        {"id": HOSTILE, "text": text, "payload": {HOSTILE: HOSTILE_SCRIPT, "url": "javascript:alert(1)"}},
        {"id": HOSTILE_SCRIPT, "text": text + " And one more word.", "payload": {"nested": {"a": [HOSTILE]}}},
        {"id": "javascript:alert(1)", "text": text + " And two more words."},
        {"id": "../../#search/%2F?a=b&c", "text": text + " The end."},
        {"id": "\u202egnp.exe", "text": text + " The very end."},
        {"id": "a" * 400, "text": text + " Really."},
    ]
    assert empty.ask("/v1/documents", documents)[0] == 200
    for look in DESKTOP, PHONE:
        tab = visit(empty, **look)
        search_for(tab, text)
        expect(tab.locator(".hit")).to_have_count(len(documents))
        shown = tab.locator(".hit").evaluate_all("(all) => all.map((one) => one.dataset.id)")
        assert sorted(shown) == sorted(one["id"] for one in documents)
        expect(tab.locator(".hit-link", has_text=HOSTILE)).to_be_visible()
        check_fits(tab)
        for place in range(len(documents)):
            tab.locator(".hit-link").nth(place).click()
            expect(tab.locator("#diff")).to_be_visible()
            expect(tab.locator("#diff")).to_contain_text(HOSTILE)
            check_fits(tab)
            tab.keyboard.press("Escape")
            tab.locator(".hit").nth(place).get_by_role("link", name="Its cluster").click()
            expect(tab.locator("#members tbody tr")).to_have_count(len(documents))
            check_fits(tab)
            tab.go_back()
            expect(tab.locator(".hit").first).to_be_visible()
        shot(tab, f"hostile-{look['viewport']['width']}")
        assert tab.locator("main img, main script").count() == 0
        assert tab.evaluate("window.stolen") is None
