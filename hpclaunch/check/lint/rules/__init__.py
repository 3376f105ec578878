"""All rules. Importing this package registers them, in the order of the docs."""

from hpclaunch.check.lint.rules import binding, flow, request, environment, modules, python_code  # noqa: I001

__all__ = ["binding", "environment", "flow", "modules", "python_code", "request"]
