"""From a node and a request to the CPUs, GPUs and NIC of each local rank, in the syntax of each launcher."""
