#!/bin/bash
srun --export="ALL,DEVICES='0,1'" ./app
# site: unknown
