"""A rank of JAX that finds the others by Slurm."""

import jax

jax.distributed.initialize()
print(jax.devices())
