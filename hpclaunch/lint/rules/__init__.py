"""All rules. Importing this package registers them, in the order of the docs."""

# ruff: noqa: F401, I001
from hpclaunch.lint.rules import binding_rules, flow_rules, resource_rules
from hpclaunch.lint.rules import environment_rules, module_rules, python_rules, setup_rules
from hpclaunch.lint.rules import directive_rules, step_rules, rendezvous_rules, variable_rules, upkeep_rules
from hpclaunch.lint.rules import thread_rules
