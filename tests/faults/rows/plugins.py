"""Plugins that are missing, wrong, unsafe, or break."""

import pathlib
import re
import shutil

from harness import ANY, TRAINING, Row, Skip, ended
from rows.disks import build_of, built
from rows.files import BEFORE, starts_not
from training import WORLD, backend_of


def fakes(place):
    """The folder of the plugins that are built for the tests."""
    folder = pathlib.Path(place.program).parent.parent / "tests/fakes"
    if not (folder / "libddprun_comm_good.so").exists():
        raise Skip(f"{folder} has no plugins; build the target ddprun_fakes")
    return folder


def missing(place, backend, rng):
    return starts_not(place, 3, 'comm.backend = "nosuch": comm plugin "nosuch": not found: looked in ',
                      "comm.backend=nosuch")


def plugin_of(*lines):
    """lines: the name of a plugin, and what is said about it. A trial takes one of them."""
    def trial(place, backend, rng):
        name, line = rng.choice(lines)
        path = fakes(place) / f"libddprun_comm_{name}.so"
        return starts_not(place, 3, re.escape(str(path)) + ".*" + line, f"comm.backend={path}")
    return trial


def others_may_write(place, backend, rng):
    """The mode of the file, or that of its folder."""
    folder = place.folder / "plugins"
    folder.mkdir(mode=0o755)
    path = folder / "libddprun_comm_good.so"
    shutil.copy(fakes(place) / path.name, path)
    victim, mode = rng.choice([(path, 0o666), (folder, 0o777)])
    victim.chmod(mode)
    line = f"comm plugin {path}: refused: {victim} can be written by everyone; run chmod o-w {victim}"
    return starts_not(place, 3, re.escape(line) + "$", f"comm.backend={path}")


def data_set(place, path, options):
    """A config with this data set."""
    text = TRAINING.replace('name = "simplenet"\noptions = { hidden = 32 }', 'name = "simplenet"')
    text = text.replace('name = "synthetic"', f'name = "{path}"')
    return place.config(re.sub(r'options = { shape = .*', f"options = {options}", text))


def data_set_throws(place, backend, rng):
    """It throws across the ABI when it is opened, or asked what it has."""
    function = rng.choice(["open", "describe"])
    path = fakes(place) / "libddprun_dataset_throwing.so"
    return starts_not(place, 3, rf'{re.escape(str(path))}".*: the plugin threw "no {function} today"',
                      config=data_set(place, path, f'{{ in = "{function}" }}'))


def throws_while_joining(place, backend, rng):
    """It throws across the ABI in create(), which only the ranks call."""
    path = built(build_of(place) / "tests/fakes/libddprun_comm_throwing.so")
    config = place.config(TRAINING + "[comm]\noptions = { throw = \"create\" }\n")
    job = place.train(f"comm.backend={path}", config=config)
    return ended(place, job, job.started, rank=range(3), code=3, cause='throwing: .*the plugin threw "no create today"')


def crashes_in_training(place, backend, rng):
    """The data set's plugin aborts in fetch()."""
    plugin = next(fakes(place).rglob("libddprun_dataset_faulty.so"), None)
    if plugin is None:
        raise Skip("libddprun_dataset_faulty.so is not built; build the target ddprun_fakes")
    job = place.train(backend_of(backend), config=data_set(place, plugin, '{ fault = "crashes" }'))
    outcome = ended(place, job, job.started, rank=range(WORLD),
                    cause=r"killed by signal 6 \(SIGABRT\) in .*fetch.* \(libddprun_dataset_faulty\.so\)")
    outcome.cause = outcome.cause and "its stack:" in job.text()
    return outcome


ROWS = [
    Row("plugin missing", "the folders that were searched; exit 3" + BEFORE, 1, missing, backends=ANY, full=5),
    Row("plugin of another ABI", "path and both versions; exit 3" + BEFORE, 1,
        plugin_of(("newer_abi", "wrong ABI: the plugin has version 3.*1")), backends=ANY, full=5),
    Row("plugin that crashes, throws or ends the process while it is loaded",
        "path, and what happened; exit 3" + BEFORE, 1,
        plugin_of(("crashes", "crashed: Segmentation fault"), ("exits", "ended with exit code 0"),
                  ("quits", "ended with exit code 7"), ("throws_when_loaded", 'it threw "no constructor today"')),
        backends=ANY, full=20),
    Row("plugin that others may write", "its path, or that of its folder; exit 3" + BEFORE, 1, others_may_write,
        backends=ANY, full=10),
    Row("data set's plugin that throws when it is opened", "its path and the text; exit 3" + BEFORE, 1, data_set_throws,
        backends=ANY, full=10),
    Row("plugin that throws while the ranks join", "its name and the text; exit 3", 1, throws_while_joining, quick=1,
        full=10, backends=ANY),
    Row("a plugin crashes", "plugin, function and stack; exit 5", None, crashes_in_training, quick=1, full=5),
]
