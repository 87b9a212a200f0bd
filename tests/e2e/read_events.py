"""Prints the scalars of a folder's event file, as TensorBoard reads them: {tag: [[step, value], ...]}."""
import json
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(f"skipped: this Python has no tensorboard: {error}")
    sys.exit(77)

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [[event.step, event.value] for event in events.Scalars(tag)]
                  for tag in events.Tags()["scalars"]}))
