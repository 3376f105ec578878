#!/bin/bash
exec > >(tee job.log)
srun ./app
# site: unknown
