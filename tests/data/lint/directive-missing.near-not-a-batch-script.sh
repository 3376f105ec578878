#!/bin/bash
./configure
make
# site: lumi-g
