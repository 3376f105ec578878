import argparse

import lightning as L

parser = argparse.ArgumentParser()
parser.add_argument("--gpus", type=int, default=1)
trainer = L.Trainer(devices=parser.parse_args().gpus, strategy="ddp")
