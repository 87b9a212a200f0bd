"""Python imports this file at start-up, if its folder is in PYTHONPATH. `ddprun compare` adds the folder for the
programs that it starts. Without DDPRUN_RECORD and DDPRUN_TORCH_BACKEND, or if the process never imports PyTorch, this
file only runs the other sitecustomize that it hides."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class WhenTorchIsThere:
    """Installs the recording when `import torch` has ended. Before that, it imports no module."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        import_torch = spec.loader.exec_module

        def import_and_install(module):
            import_torch(module)
            for name in ("record_files", "traced_buckets", "recorded_steps", "recording"):
                loaded = load(name)
            loaded.install()

        spec.loader.exec_module = import_and_install
        return spec


def load(name):
    """Loads the module ddprun.NAME without the package ddprun, which would load ddprun's backends."""
    full = "ddprun." + name
    if full in sys.modules:
        return sys.modules[full]
    from importlib.util import module_from_spec, spec_from_file_location
    spec = spec_from_file_location(full, os.path.join(os.path.dirname(HERE), name + ".py"))
    module = sys.modules[full] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_hidden_one():
    others = [path for path in sys.path if os.path.abspath(path) != HERE]
    for finder in sys.meta_path:
        spec = finder.find_spec(__name__, others)
        if spec is not None and spec.loader is not None and spec.origin not in ("built-in", "frozen"):
            module = type(sys)(__name__)  # importlib.util would take longer than all else here
            module.__file__ = spec.origin
            exec(spec.loader.get_code(__name__), module.__dict__)
            return


if os.environ.get("DDPRUN_RECORD") or os.environ.get("DDPRUN_TORCH_BACKEND"):
    sys.meta_path.insert(0, WhenTorchIsThere())
run_hidden_one()
