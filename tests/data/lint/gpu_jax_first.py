"""A rank of JAX that takes its first GPU."""

import jax

jax.distributed.initialize(local_device_ids=[0])
print(jax.devices())
