"""The software environment of a job as data: modules, EasyBuild, EESSI, containers, venv, conda."""
