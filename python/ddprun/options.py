"""The options of a backend: the dict `pg_options` of init_process_group, and the variable DDPRUN_OPTIONS."""
import dataclasses
import datetime
import os

_YES = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


def _flag(name, value):
    flag = value if isinstance(value, bool) else _YES.get(str(value).lower())
    if flag is None:
        raise ValueError(f"ddprun: option {name}={value}: expected on or off")
    return flag


def _seconds(name, value):
    try:
        seconds = value.total_seconds() if isinstance(value, datetime.timedelta) else float(value)
    except ValueError:
        seconds = 0
    if seconds <= 0:
        raise ValueError(f"ddprun: option {name}={value}: expected a number of seconds above 0")
    return datetime.timedelta(seconds=seconds)


@dataclasses.dataclass(frozen=True)
class Options:
    algorithm: str = "auto"
    check: bool = True  # compare the calls of the ranks before each collective
    deterministic: bool = False  # reductions add the ranks in the same order in every run
    timeout: datetime.timedelta | None = None  # None: that of the process group
    plugin: tuple = ()  # options of the plugin: (name, value) pairs

    def updated(self, given, backend):
        """A copy with the entries of the dict `given`. A name that is not an option here is an option of the plugin."""
        if given is None:
            return self
        if not isinstance(given, dict):
            raise TypeError(f"{backend}: pg_options is a {type(given).__name__}: expected a dict, such as "
                            '{"algorithm": "ring"}')
        own = {"algorithm": lambda _, value: str(value), "check": _flag, "deterministic": _flag, "timeout": _seconds}
        changed = {name: own[name](name, value) for name, value in given.items() if name in own}
        plugin = dict(self.plugin) | {name: str(value) for name, value in given.items() if name not in own}
        return dataclasses.replace(self, **changed, plugin=tuple(sorted(plugin.items())))

    @classmethod
    def from_environment(cls):
        """The options of the environment variable, such as DDPRUN_OPTIONS="algorithm=ring,check=off"."""
        given = {}
        for entry in filter(None, os.environ.get("DDPRUN_OPTIONS", "").split(",")):
            name, equals, value = entry.partition("=")
            if not equals or not name.strip():
                raise ValueError(f"ddprun: DDPRUN_OPTIONS: {entry!r}: expected name=value, separated by commas")
            given[name.strip()] = value.strip()
        return cls().updated(given, "ddprun")
