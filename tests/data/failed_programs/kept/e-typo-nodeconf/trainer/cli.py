import argparse


def parse():
    p = argparse.ArgumentParser(prog="trainer")
    p.add_argument("--lr", type=float, required=True)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--log-every", type=int, default=10)
    return p.parse_args()


if __name__ == "__main__":
    args = parse()
    from trainer.loop import fit      # torch is slow to import
    fit(args)
