
# site: unknown
# expect: - no-directives
