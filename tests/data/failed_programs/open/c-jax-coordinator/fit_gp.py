"""Distributed sums for a Gaussian process, JAX on CPUs."""
import os
import sys

import site_config

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.experimental import multihost_utils  # noqa: E402


def main():
    cfg = site_config.load(int(os.environ["RANK"]))
    print(f"p{cfg.process}: coordinator {cfg.coordinator}, {cfg.processes} processes", flush=True)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator_address=cfg.coordinator,
        num_processes=cfg.processes,
        process_id=cfg.process,
        initialization_timeout=cfg.timeout,
    )
    x = jnp.linspace(0, 1, 64) + cfg.process
    k = jnp.exp(-0.5 * (x[:, None] - x[None, :]) ** 2) + 1e-2 * jnp.eye(64)
    ll = jnp.linalg.slogdet(k)[1]
    total = multihost_utils.process_allgather(ll).sum()
    print(f"p{cfg.process}: log det {total:.4f}", flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    sys.exit(main())
