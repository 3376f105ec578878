"""What a run prints before its first step: the size of a step, the learning rate, warnings. Pure."""

from .data.epoch_partition import steps_per_epoch
from .run_options import Options

FEWEST_STEPS = 50
"""Steps per epoch below which a run warns."""

_GOYAL = "Goyal et al. 2017 (arXiv:1706.02677)"


def step_lines(options: Options, ranks: int, images: int) -> list[str]:
    """Images per step, steps per epoch of ``images``, and how the rate is scaled: one line each."""
    schedule = options.schedule(ranks)
    factors = [f"{ranks} rank(s)", f"{options.batch_size} images"]
    if options.accumulate > 1:
        factors.append(f"{options.accumulate} batches")
    steps = steps_per_epoch(images, options.step_images, ranks)
    rate = f"learning rate {schedule.base:g}"
    if options.lr_scaling == "none":
        rate += ", not scaled"
    else:
        rate += f" x {schedule.scale:.4g} ({options.lr_scaling} in the ranks) = {schedule.peak:.4g}"
        rate += f", reached after {schedule.warmup_epochs:.3g} epoch(s) of warm-up"
    if options.decay != "none":
        rate += f"; {options.decay} decay"
    return [
        f"{options.step_images * ranks:,} images per step ({' x '.join(factors)}), {steps:,} steps per epoch",
        rate,
    ]


def step_warnings(options: Options, ranks: int, images: int) -> list[str]:
    """What about steps and rate is likely to cost accuracy, with what the literature does."""
    found = []
    steps = steps_per_epoch(images, options.step_images, ranks)
    if steps < FEWEST_STEPS:
        smaller = images // (FEWEST_STEPS * ranks * options.accumulate)
        remedy = f"--batch-size {smaller} gives {FEWEST_STEPS}" if smaller else "use fewer ranks"
        found.append(
            f"only {steps} step(s) per epoch, so few updates seldom train well: {remedy}. {_GOYAL} lose no "
            "accuracy up to 8,192 of 1.28 million images per step, 156 steps per epoch"
        )
    growth = ranks * options.accumulate
    if growth > 1 and options.schedule(ranks).scale == 1:
        found.append(
            f"a step has {growth} times the images of one batch, but the learning rate is that of one rank: "
            f"{_GOYAL} multiply it by {growth}, after a warm-up (--lr-scaling linear). Ignore this where "
            "--lr is scaled already"
        )
    return found
