"""sites/default.ini, then sites/p<rank>.ini on top of it."""
import configparser
import os
from collections import namedtuple

Config = namedtuple("Config", "process processes coordinator timeout")
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sites")


def load(process):
    ini = configparser.ConfigParser(os.environ)
    used = ini.read([os.path.join(HERE, "default.ini"), os.path.join(HERE, f"p{process}.ini")])
    if len(used) > 1:
        print(f"p{process}: note: {used[-1]} overrides {used[0]}", flush=True)
    jax = ini["jax"]
    host, port = jax["host"], jax.getint("port") + jax.getint("port_shift")
    return Config(process, jax.getint("processes"), f"{host}:{port}", jax.getint("timeout"))
