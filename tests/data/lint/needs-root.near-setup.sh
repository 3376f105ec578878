#!/bin/bash
sudo apt-get install libopenmpi-dev
# site: unknown
