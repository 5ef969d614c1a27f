# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: nothing is fetched, the console is clean, the table sorts and filters by mouse and keyboard."""
import json
import pathlib
import shutil
import tempfile
import unittest

import bundles

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError:
    webdriver = None

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WIDTHS = (375, 1280, 2560)
WAIT_S = 20


@unittest.skipUnless(webdriver and CHROMIUM and DRIVER, "the browser is not installed: scripts/setup --with browser")
class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-browser-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        bundle = bundles.of_all_states()
        bundle["sources"][0]["file"] = bundles.HOSTILE
        bundle["rows"][1]["reason"] = bundles.HOSTILE
        (cls.folder / "page.html").write_text(bundles.page_of(bundle), encoding="utf-8")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                         f"--user-data-dir={cls.folder / 'profile'}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.browser = webdriver.Chrome(service=Service(DRIVER), options=options)
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        self.browser.set_window_size(1280, 900)
        self.browser.get((self.folder / "page.html").as_uri())

    def wait_until(self, holds):
        """A change of the medium takes effect with a later frame."""
        WebDriverWait(self.browser, WAIT_S).until(holds)

    def column(self, number):
        """What the shown rows have in a column."""
        rows = self.browser.find_elements(By.CSS_SELECTOR, "#rows tbody tr")
        return [row.find_elements(By.TAG_NAME, "td")[number].text for row in rows if row.is_displayed()]

    def heading(self, name):
        """The place of a column, and its button."""
        buttons = self.browser.find_elements(By.CSS_SELECTOR, "#rows thead button")
        place = [button.text for button in buttons].index(name)
        return place, buttons[place]

    def test_nothing_is_fetched_and_the_console_is_clean(self):
        self.assertEqual(self.browser.get_log("browser"), [])
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        asked = [message["params"]["request"]["url"] for message in messages
                 if message["method"] == "Network.requestWillBeSent" and "page.html" in message["params"]["documentURL"]]
        self.assertIn((self.folder / "page.html").as_uri(), asked)
        self.assertEqual([url for url in asked if "page.html" not in url and not url.startswith("data:")], [])
        self.assertEqual(self.browser.execute_script("return performance.getEntriesByType('resource').length"), 0)

    def test_hostile_text_is_text(self):
        self.assertTrue(self.browser.title.startswith("tutti: "))
        self.assertIn(bundles.HOSTILE, self.browser.find_element(By.TAG_NAME, "main").get_attribute("textContent"))

    def test_sorting_by_mouse(self):
        place, button = self.heading("time (us)")
        button.click()
        rising = [float(text) for text in self.column(place) if text]
        self.assertEqual(rising, sorted(rising))
        button.click()
        texts = self.column(place)
        falling = [float(text) for text in texts if text]
        self.assertEqual(falling, sorted(falling, reverse=True))
        self.assertEqual(texts[-1], "", "what has no value stays last")

    def test_sorting_by_keyboard(self):
        place, button = self.heading("size")
        button.send_keys(Keys.ENTER)
        heading = button.find_element(By.XPATH, "..")
        self.assertEqual(heading.get_attribute("aria-sort"), "ascending")
        button.send_keys(Keys.SPACE)
        self.assertEqual(heading.get_attribute("aria-sort"), "descending")
        self.assertEqual(self.column(place)[0], "1 MiB")

    def test_filtering(self):
        every = len(self.column(0))
        field = self.browser.find_element(By.ID, "filter")
        field.send_keys("openmpi")
        self.assertEqual(len(self.column(0)), every // 2)
        self.assertEqual(self.browser.find_element(By.ID, "shown").text, f"{every // 2} of {every} rows")
        field.clear()
        field.send_keys("x", Keys.BACKSPACE)
        Select(self.browser.find_element(By.ID, "state")).select_by_visible_text("wrong")
        self.assertEqual(len(self.column(0)), 1)

    def test_verdict_and_marks_are_in_view(self):
        for name in ("verdict", "marks"):
            _, button = self.heading(name)
            self.assertLess(button.rect["x"] + button.rect["width"], 1280, name)

    def test_paper_has_the_words_of_pictures(self):
        shown = "return Array.from(document.querySelectorAll('figcaption p')).map(p => p.checkVisibility({contentVisibilityAuto: true}))"

        self.wait_until(lambda browser: set(browser.execute_script(shown)) == {False})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"media": ""})
        self.wait_until(lambda browser: set(browser.execute_script(shown)) == {True})

    def test_widths_and_colour_schemes(self):
        grounds = {}
        for scheme in ("light", "dark"):
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                "features": [{"name": "prefers-color-scheme", "value": scheme}]})
            for width in WIDTHS:
                self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                    "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
                is_set = f"return innerWidth === {width} && matchMedia('(prefers-color-scheme: {scheme})').matches"
                with self.subTest(scheme=scheme, width=width):
                    self.wait_until(lambda browser, is_set=is_set: browser.execute_script(is_set))
                    self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth"), width)
                    widest = self.browser.execute_script(
                        "return Math.max(...Array.from(document.querySelectorAll('figure')).map(f => f.getBoundingClientRect().right))")
                    self.assertLessEqual(widest, width)
            grounds[scheme] = self.browser.execute_script("return getComputedStyle(document.documentElement).backgroundColor + "
                                                          "getComputedStyle(document.body).backgroundColor")
        self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.assertNotEqual(grounds["light"], grounds["dark"])


if __name__ == "__main__":
    unittest.main()
