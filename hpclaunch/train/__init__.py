"""The bundled runner: data-parallel training of a digit classifier over any MPI.

Imports numpy, mpi4py and the standard library only, always relative to itself: a copy of this folder
runs on a compute node under any package name (``python -m NAME``). Importing the package is free.
"""
