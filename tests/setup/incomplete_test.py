"""Tests cmake/setup/incomplete.py, which finds the packages of an environment that must be installed again."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "cmake/setup/incomplete.py"


class Incomplete(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = pathlib.Path(folder.name)
        self.info = self.site / "some_package-1.5.dist-info"
        self.info.mkdir()
        (self.info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-package\nVersion: 1.5\n")
        (self.info / "INSTALLER").write_text("pip\n")
        (self.info / "RECORD").write_text("some/code.py,sha256=x,4\nsome/__pycache__/code.pyc,,\n"
                                          "some_package-1.5.dist-info/RECORD,,\n")
        (self.site / "some").mkdir()
        (self.site / "some/code.py").write_text("code")

    def incomplete(self, *pins):
        result = subprocess.run([sys.executable, SCRIPT, *pins], env={"PYTHONPATH": str(self.site)}, text=True,
                                stdout=subprocess.PIPE, timeout=60, check=True)
        return result.stdout.split()

    def test_a_whole_package_is_not_printed(self):
        self.assertEqual(self.incomplete("some-package==1.5"), [])

    def test_an_absent_package_is_printed(self):
        self.assertEqual(self.incomplete("other==1", "some-package==1.5"), ["other==1"])

    def test_another_version_is_printed_and_left_for_pip_to_replace(self):
        self.assertEqual(self.incomplete("some-package==1.6"), ["some-package==1.6"])
        self.assertTrue(self.info.exists())

    def test_a_missing_file_makes_it_incomplete(self):
        (self.site / "some/code.py").unlink()
        self.assertEqual(self.incomplete("some-package==1.5"), ["some-package==1.5"])

    def test_a_truncated_file_makes_it_incomplete_and_pip_will_not_take_it_for_installed(self):
        (self.site / "some/code.py").write_text("co")
        self.assertEqual(self.incomplete("some-package==1.5"), ["some-package==1.5"])
        self.assertFalse(self.info.exists())

    def test_what_pip_has_not_finished_is_incomplete(self):
        (self.info / "INSTALLER").unlink()
        self.assertEqual(self.incomplete("some-package==1.5"), ["some-package==1.5"])


if __name__ == "__main__":
    unittest.main()
