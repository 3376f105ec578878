#!/bin/bash
srun --export=ALL,LANG=C,PATH,HOME ./app
# site: unknown
