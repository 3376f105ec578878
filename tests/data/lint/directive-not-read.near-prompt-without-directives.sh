#!/bin/bash
# $ -cwd
./app
# site: unknown
