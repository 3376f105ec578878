import lightning as L


def main() -> None:
    """Train on four devices of each of two nodes."""
    trainer = L.Trainer(accelerator="gpu", devices=4, num_nodes=2, strategy="ddp")
    trainer.fit(None)
