"""What checks of a machine with GPUs work with, and what they give."""

import dataclasses
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

HERE = pathlib.Path(__file__).parent
LIMIT = 400  # seconds of one program


@dataclasses.dataclass
class Result:
    name: str
    text: str
    good: bool
    figures: dict = dataclasses.field(default_factory=dict)

    def line(self, width=0):
        return f"{self.name:<{width}}  {'ok    ' if self.good else 'FAILED'}  {self.text}"


@dataclasses.dataclass
class Machine:
    """What is there, and how ranks are put on it."""
    build: pathlib.Path
    gpus: int
    quick: bool
    folder: pathlib.Path
    models: tuple = ("linear", "simplenet", "resnet18")  # that are trained beside the CPU

    @property
    def ranks(self):
        """Of a job that communicates: two at least, on one GPU where there is no other."""
        return max(2, self.gpus)

    @property
    def devices(self):
        return [rank % self.gpus for rank in range(self.ranks)]

    @property
    def shares(self):
        return self.gpus < self.ranks

    def program(self, name):
        return self.build / "bin" / name

    def where(self):
        return f"{self.ranks} ranks on {self.gpus} GPU{'s' if self.gpus > 1 else ''}"
