"""Weights that torchvision wrote give the same scores here, and weights that we wrote give the same scores there.
argv: the model_logits program."""

import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors.torch import load_file, save_file
    from torchvision.models import resnet18
except ImportError as missing:
    print(f"skipped: {missing}; set DDPRUN_PYTHON to a Python with torch, torchvision and safetensors")
    sys.exit(77)

# Bit-equal with the same Torch on both sides and the same order in memory; another Torch, or channels_last, may choose
# other kernels, which add in another order.
TOLERANCE = 1e-5

torch.set_num_threads(1)
torch.manual_seed(1)


def random_model(classes):
    """Weights and running statistics far from where they start."""
    model = resnet18(num_classes=classes)
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(0, 0.5)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 2)
        else:
            buffer.fill_(17)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            torch.nn.init.uniform_(parameter, 0.5, 1)
    return model


def scores(model, images):
    with torch.no_grad():
        return model.eval()(images)


def compare(what, ours, theirs):
    apart = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    print(f"{what}: {'bit-equal' if torch.equal(ours, theirs) else f'{apart:.1e} apart'}")
    if not apart <= TOLERANCE:
        sys.exit(f"failed: {what}: {apart:.1e} apart, {TOLERANCE:.0e} allowed")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for classes, extent, words in [(10, 64, []), (1000, 224, []), (10, 64, ["memory_format=channels_last"])]:
        model = random_model(classes)
        batch = {"input": torch.randn(3, 3, extent, extent), "target": torch.tensor([0, 1, 2])}
        save_file(model.state_dict(), folder / "weights.safetensors")
        save_file(batch, folder / "batch.safetensors")
        out = folder / f"{classes}-{extent}-{len(words)}"
        out.mkdir()
        subprocess.run([sys.argv[1], "resnet18", str(classes), folder / "weights.safetensors",
                        folder / "batch.safetensors", out, "3", str(extent), str(extent), *words], check=True)
        ours = load_file(out / "scores.safetensors")
        what = f"resnet18, {classes} classes, {extent}x{extent} {' '.join(words)}"
        compare(f"{what}: from torchvision to ddprun", ours["loaded"], scores(model, batch["input"]))

        (checkpoint,) = out.glob("step-*.safetensors")
        state = load_file(checkpoint)
        assert int(state["bn1.num_batches_tracked"]) == 18, "one more batch than torchvision's"
        assert not torch.equal(ours["loaded"], ours["trained"]), "the step changes the scores"
        model.load_state_dict(state, strict=True)
        compare(f"{what}: from ddprun to torchvision", ours["trained"], scores(model, batch["input"]))
